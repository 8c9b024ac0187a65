#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""keeper.py LIFE FLAGS COMMAND...: runs a command, and ends it when the pipe LIFE ends.

The lab holds the other end of the pipe and never writes to it. So the pipe ends with the lab, however the lab
ends: SIGKILL leaves it no time to end QEMU and skuad itself. FLAGS is -, or some of these, with commas:

  group      the command has a process group: all of it is asked to end before it is killed
  no-setuid  nothing of the command can make a setuid or setgid file, or a device. QEMU serves shares of
             the host as root, and passes on which mode the guest asks for.
"""

import os
import resource
import select
import signal
import sys

LAB = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
GRACE = 10000       # ms between SIGTERM and SIGKILL of a group


def children(pid):
    try:
        with open('/proc/%d/task/%d/children' % (pid, pid)) as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def end(child, ended, group):
    if group:
        os.killpg(0, signal.SIGTERM)            # we do not hear it
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.poll(GRACE)
    # The first child of unshare is all that its namespace needs: the rest dies with it.
    for pid in [*children(child), child]:
        kill(pid)
    if group:
        os.killpg(0, signal.SIGKILL)


def execute(life, flags, command):
    os.set_inheritable(life, False)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)       # Python ignores it
    try:
        if 'no-setuid' in flags:
            sys.path.insert(0, LAB)
            from skualab.host import seccomp
            seccomp.no_setuid()
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, ('%s: %s\n' % (command[0], error.strerror)).encode())
    finally:
        os._exit(127)


def main():
    life, flags, command = int(sys.argv[1]), sys.argv[2].split(','), sys.argv[3:]
    child = os.fork()
    if not child:
        execute(life, flags, command)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Whoever waits for the end of a pipe or socket of the command's must not wait for us.
    for fd in map(int, os.listdir('/proc/self/fd')):
        if fd > 2 and fd != life:
            try:
                os.close(fd)
            except OSError:
                pass        # that of the listing itself
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(life, 0)              # POLLHUP needs no asking
    poll.register(ended, select.POLLIN)
    if ended not in [fd for fd, _ in poll.poll()]:
        end(child, ended, 'group' in flags)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.WEXITSTATUS(status)


if __name__ == '__main__':
    sys.exit(main())
