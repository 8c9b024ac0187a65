"""A program that runs in the root beside a guest: started, watched and ended by its pid.

It is the first process of a namespace of its own (chroot.py), so that its end is the end of
everything that it started. Its keeper ends it when the lab is gone (keeper.py).
"""

import contextlib
import os
import signal
import subprocess
import time

from skualab.host.family import popen
from skualab.host.keeper import children
from skualab.roots import chroot

FIRST = -10         # nice: as skuad has it for itself


class Process:
    """within: words before its own that put it into namespaces; flags: of its keeper."""

    def __init__(self, command, log, binds=(), fds=(), stdin=subprocess.DEVNULL, stdout=None, within=(), flags=()):
        self.popen, self.life = popen(
            [*within, *chroot.words(command, binds=binds)], fds, flags, stdin=stdin, stdout=stdout or log, stderr=log,
            start_new_session=stdin == subprocess.DEVNULL)

    def go_first(self):
        """Its session is served before others. Where the scheduler has a group for each session (sched(7), autogroup), a
        nice value counts within the session alone. Not everybody may raise it, and nothing depends on it."""
        with contextlib.suppress(OSError), open('/proc/%d/autogroup' % self.popen.pid, 'w') as file:
            file.write(str(FIRST))

    def ended(self):
        """Its exit status, or None while it runs."""
        return self.popen.poll()

    def pid(self):
        """The program itself: the only child of unshare, which is the only child of the keeper."""
        pid = self.popen.pid
        for _ in range(2):
            below = children(pid)
            if not below:
                return None
            pid = below[0]
        return pid

    def signal(self, number):
        inner = self.pid()
        if inner and self.ended() is None:
            try:
                os.kill(inner, number)
            except ProcessLookupError:
                pass        # it has just ended

    def cpu_seconds(self):
        """What it has used of a processor."""
        with open('/proc/%d/stat' % self.pid()) as file:
            fields = file.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def memory_kib(self):
        """What it has allocated, in KiB: memory of the guest that it maps is not counted."""
        with open('/proc/%d/status' % self.pid()) as file:
            return int(dict(line.split(':', 1) for line in file)['RssAnon'].split()[0])

    def stop(self, grace=3.0):
        """Ask, wait, then kill."""
        self.signal(signal.SIGTERM)
        end = time.monotonic() + grace
        while self.ended() is None and time.monotonic() < end:
            time.sleep(0.02)
        if self.life is not None:
            os.close(self.life)
            self.life = None
        self.popen.wait()
        return self.popen.returncode
