"""A program that runs in the root beside a guest: started, watched and ended by its pid.

It is the first process of a namespace of its own (chroot.py), so that its end is the end of
everything that it started.
"""

import os
import signal
import subprocess
import time

import chroot


class Process:
    """within: words before its own that put it into namespaces."""

    def __init__(self, command, log, binds=(), fds=(), stdin=subprocess.DEVNULL, stdout=None, within=()):
        self.popen = subprocess.Popen(
            [*within, *chroot.words(command, binds=binds)], stdin=stdin, stdout=stdout or log, stderr=log,
            pass_fds=fds, start_new_session=stdin == subprocess.DEVNULL)

    def ended(self):
        """Its exit status, or None while it runs."""
        return self.popen.poll()

    def _inner(self):
        """The program itself, which is the only child of unshare."""
        pid = self.popen.pid
        try:
            with open('/proc/%d/task/%d/children' % (pid, pid)) as file:
                return int(file.read().split()[0])
        except (OSError, IndexError):
            return None

    def signal(self, number):
        inner = self._inner()
        if inner and self.ended() is None:
            os.kill(inner, number)

    def cpu_seconds(self):
        """What it has used of a processor."""
        with open('/proc/%d/stat' % self._inner()) as file:
            fields = file.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def memory_kib(self):
        """What it has allocated, in KiB: memory of the guest that it maps is not counted."""
        with open('/proc/%d/status' % self._inner()) as file:
            return int(dict(line.split(':', 1) for line in file)['RssAnon'].split()[0])

    def stop(self, grace=3.0):
        """Ask, wait, then kill."""
        self.signal(signal.SIGTERM)
        end = time.monotonic() + grace
        while self.ended() is None and time.monotonic() < end:
            time.sleep(0.02)
        if self.ended() is None:
            self.popen.kill()
        self.popen.wait()
        return self.popen.returncode
