"""The way from the host into a guest that stays: ssh over a port of QEMU's, one connection for all who enter.

ssh on the host is the master of that connection, and takes others at a socket (ControlMaster of ssh_config(5)). In the
guest the port leads to its sshd. No network is between them.
"""

import os
import subprocess
import termios
import time

from skualab.host.family import popen
from skualab.host.say import LabError
from skualab.machines import ssh
from skualab.machines.guest import Timeout
from skualab.roots import chroot, program

PORT = 'ssh'
# Waits until the guest's kernel knows that the host is there.
RELAY = 'until nc 127.0.0.1 %d <>/dev/virtio-ports/%s >&0; do sleep 0.1; done' % (ssh.PORT, PORT)
# The key comes through a pipe, and lies in memory: /tmp of this command's own.
MASTER = '''umask 077; cat /proc/self/fd/$0 >/tmp/key
exec ssh -F none -M -N -S "$1" -i /tmp/key -o ProxyCommand=- -o BatchMode=yes -o StrictHostKeyChecking=no \\
	-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "root@$2"'''


def path(place, name):
    """Of the socket of a guest's master."""
    return '%s/%s' % (place, name)


class Master:
    """place: a directory for sockets, which others have to bind."""

    def __init__(self, name, guest, keys, place, directory, deadline):
        socket = path(place, name)
        read, write = os.pipe()
        self.log = open(os.path.join(directory, 'ssh.log'), 'w')
        self.process = program.Process(['sh', '-c', MASTER, str(read), socket, name], self.log, binds=[place],
                                       fds=[read], stdin=guest.lines[PORT], stdout=guest.lines[PORT])
        os.close(read)
        with open(write, 'w') as file:
            file.write(keys.user)
        guest.start(RELAY, deadline)
        while not os.path.exists(socket):
            if self.process.ended() is not None:
                raise LabError('ssh to %s ended; see %s' % (name, self.log.name))
            if time.monotonic() > deadline:
                raise Timeout()
            time.sleep(0.05)

    def stop(self):
        self.process.stop(grace=0)
        self.log.close()


def enter(socket, name, script, tty, timeout=None, stdin=None):
    """Run a bash script in a guest by the socket of its master; its exit status, or None where the time was not enough.
    stdin: as Popen takes it; without it the script reads from our own."""
    words = ['ssh', '-F', 'none', '-S', socket, '-o', 'LogLevel=ERROR', '-tt' if tty else '-T', name, script]
    before = termios.tcgetattr(0) if tty else None
    process, life = popen(chroot.words(words, binds=[os.path.dirname(socket)]), stdin=stdin)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        os.close(life)
        process.wait()
        if before:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
