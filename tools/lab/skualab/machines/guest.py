"""A guest: QEMU with a kernel, the root image, and ports on which its agent is spoken to.

The ports are pairs of sockets that QEMU inherits, so that they have no names. The guest's
side is in-guest/agent.
"""

import base64
import os
import re
import select
import socket
import subprocess
import time

from skualab.host.say import LabError
from skualab.machines import accelerator, kernellog, qemu
from skualab.roots import program

PORTS = ('ctl', 'out', 'err', 'kmsg')


class GuestEnded(Exception):
    """The guest ended, or its kernel is past use, before the command did. The text says why."""


class Timeout(Exception):
    """The guest did not answer in time."""


class Guest:
    """directory gets console.log, dmesg.log and qemu.log; kernel is a directory of make-kernel.sh. by_hand: words for
    QEMU that give the guest its memory and its NICs, in place of those that memory and nics would make. lines: names of
    more ports, whose ends in `lines` are for others."""

    def __init__(self, directory, kernel, payload, cpus=2, memory='2G', nics=(), control=None, shares=(),
                 binds=(), more=(), tty=False, by_hand=(), iommu=False, lines=()):
        self.directory = directory
        self.console = os.path.join(directory, 'console.log')
        self.dmesg = os.path.join(directory, 'dmesg.log')
        self.accelerator, self.no_kvm = accelerator.choose(os.path.join(kernel, 'vmlinux'))
        initramfs = os.path.join(directory, 'initramfs')
        payload.write(initramfs, os.path.join(kernel, 'initramfs'))
        ours, theirs = {}, {}
        for port in (*PORTS, *lines):
            ours[port], theirs[port] = socket.socketpair()
        open(self.console, 'w').close()
        command = qemu.words(
            kernel, initramfs, self.console, accelerator.options(self.accelerator),
            accelerator.append(self.accelerator), cpus, by_hand or qemu.machine(memory, nics, iommu),
            {port: end.fileno() for port, end in theirs.items()}, control, shares, tty)
        self.log = open(os.path.join(directory, 'qemu.log'), 'w')
        self.process = program.Process(
            [*command, *more], self.log, binds=[*binds, *shares, directory],
            fds=[end.fileno() for end in theirs.values()], stdin=None if tty else subprocess.DEVNULL,
            flags=['no-setuid'] if os.geteuid() == 0 else [])
        for end in theirs.values():
            end.close()
        self.lines = {name: ours.pop(name) for name in lines}
        self.ports = ours
        self.input = b''            # of ctl, up to the last whole line
        self.sinks = {}             # port -> where its data go
        self.kernel_log = open(self.dmesg, 'wb')
        self.commands = 0
        self.fault = None           # first line of the kernel's log that makes the run fail
        self.usable = True
        self.scanned = 0            # bytes of dmesg looked at
        self.scanned_console = 0
        self.ready_after = None

    # What the guest says ------------------------------------------------------------------

    def _pump(self, timeout):
        """Take what the ports have; return whether there was something."""
        readable, _, _ = select.select([s for s in self.ports.values() if s.fileno() >= 0], [], [], timeout)
        for port, end in self.ports.items():
            if end not in readable:
                continue
            try:
                data = end.recv(1 << 16)
            except ConnectionResetError:    # QEMU ended with something of ours unread
                data = b''
            if not data:
                end.close()
            elif port == 'ctl':
                self.input += data
            elif port == 'kmsg':
                self.kernel_log.write(data)
                self.kernel_log.flush()
            elif self.sinks.get(port):
                self.sinks[port](data)
        return bool(readable)

    def idle(self, seconds):
        """Take what the guest says meanwhile."""
        self._pump(seconds)
        if self.process.ended() is not None:
            self._last_words()
            raise GuestEnded(self.why())

    def scan(self):
        """Look for faults in what the kernel said since the last time."""
        for path, name in ((self.dmesg, 'scanned'), (self.console, 'scanned_console')):
            with open(path, 'rb') as file:
                file.seek(getattr(self, name))
                data = file.read()
            whole = data[:data.rfind(b'\n') + 1]
            setattr(self, name, getattr(self, name) + len(whole))
            line, usable = kernellog.find(whole.decode(errors='replace'))
            self.usable = self.usable and usable
            if line or self.fault:
                self.fault = self._first_fault()

    def _first_fault(self):
        """By all that was said up to now."""
        for path in (self.dmesg, self.console):
            with open(path, errors='replace') as file:
                line, _ = kernellog.find(file.read())
            if line:
                return line
        return None

    def _line(self, deadline):
        """The agent's next line."""
        checked = 0.0
        while b'\n' not in self.input:
            now = time.monotonic()
            if now > deadline:
                raise Timeout('the guest did not answer in time')
            self._pump(min(0.2, deadline - now + 0.001))
            if now - checked > 0.5 or self.process.ended() is not None:
                checked = now
                self.scan()
                if not self.usable or self.process.ended() is not None:
                    self._last_words()
                    raise GuestEnded(self.why())
        line, self.input = self.input.split(b'\n', 1)
        return line.decode()

    def _last_words(self):
        """A kernel that fails goes on printing for a moment: take that, too."""
        end = time.monotonic() + 2
        while time.monotonic() < end and self.process.ended() is None:
            self._pump(0.1)
        while any(end.fileno() >= 0 for end in self.ports.values()) and self._pump(0):
            pass
        self.scan()

    # What it is told ----------------------------------------------------------------------

    def wait_ready(self, deadline):
        start, self.commands = time.monotonic(), 0
        said = self._line(deadline)
        if said != 'ready':
            raise LabError("the guest's agent said '%s' instead of 'ready'; see %s" % (said, self.console))
        self.ready_after = time.monotonic() - start

    def run(self, script, deadline, out=None, err=None):
        """Run a bash script in the guest; its output goes to out and err (functions of bytes)."""
        return self._ask('run', script, deadline, out, err)

    def start(self, script, deadline):
        """Start a bash script in the background."""
        self._ask('start', script, deadline, None, None)

    def output(self, script, deadline):
        """Run a script; return its status and its output, standard error included."""
        parts = []
        status = self.run(script, deadline, parts.append, parts.append)
        return status, b''.join(parts).decode(errors='replace')

    def _ask(self, verb, script, deadline, out, err):
        self.sinks = {'out': out, 'err': err}
        self.commands += 1
        self.ports['ctl'].sendall(b'%s %s\n' % (verb.encode(), base64.b64encode(script.encode())))
        answer = self._line(deadline)
        # All output is in the sockets by now, and the kernel's log once the agent's mark is.
        mark = b'skua-lab: %d ended' % self.commands
        end = min(deadline, time.monotonic() + 5)
        while self._pump(0) or (time.monotonic() < end and not self._has_said(mark)):
            self._pump(0.02)
        self.scan()
        return int(re.fullmatch(r'exit (\d+)', answer).group(1))

    def _has_said(self, mark):
        with open(self.dmesg, 'rb') as file:
            file.seek(max(0, self.kernel_log.tell() - 4096))
            return mark in file.read()

    def told_accelerator(self):
        return accelerator.told(self.accelerator, self.no_kvm)

    def why(self):
        """Why it ended before its time: its kernel's fault, or QEMU's status and last line."""
        if self.fault:
            return "the guest's kernel: %s" % self.fault
        with open(self.log.name, errors='replace') as file:
            said = file.read().strip().splitlines()[-1:]
        return ': '.join(['QEMU ended with status %s' % self.process.ended(), *said])

    def kill(self):
        """End its QEMU, as if its power went."""
        self.process.stop(grace=0)

    def stop(self):
        """End it. Nothing in it is worth a shutdown: its disk is memory."""
        self.process.stop(grace=1)
        for end in (*self.ports.values(), *self.lines.values()):
            end.close()
        self.kernel_log.close()
        self.log.close()
        try:
            os.unlink(os.path.join(self.directory, 'initramfs'))
        except FileNotFoundError:
            pass
