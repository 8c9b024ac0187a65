"""lab run --guests 2: a command in each of two guests, left and right, with one NIC each.

Right is the server's side: left's command starts once right's listens, at a TCP port or with the
connection manager, or has ended, or after PATIENCE. The first that fails ends the other's guest,
and its status is the run's.
"""

import os
import sys
import threading
import time

from skualab.host import failure, say
from skualab.host.say import LabError
from skualab.machines import guest, nics
from skualab.machines.skuad import Skuad
from skualab.machines.writer import Writer
from skualab.runs import run, scene

PATIENCE = 5        # seconds; who serves without listening (datagrams, multicast) is ready by then
SERVING = b'skua-lab: serving'
WATCH = '''(for i in {1..%d}; do
	sleep 0.2
	[ -z "$(ss -Hltn)" ] && ! rdma resource show cm_id 2>/dev/null | grep -q LISTEN || break
done; echo "<5>skua-lab: serving" >/dev/kmsg) </dev/null >/dev/null 2>&1 &
''' % (PATIENCE * 5)


class Prefixed:
    """Passes whole lines on, each with its side in front."""

    def __init__(self, side, writer):
        self.side, self.writer, self.rest = ('%-5s | ' % side).encode(), writer, b''

    def __call__(self, data):
        *lines, self.rest = (self.rest + data).split(b'\n')
        if lines:
            self.writer(b''.join(self.side + line + b'\n' for line in lines))

    def close(self):
        if self.rest:
            self(b'\n')


class Side:
    """One guest: its scene, its command, and how that ended."""

    def __init__(self, name, directory, options, nics_of_it, command=None):
        self.name, self.command = name, command
        self.outcome = None         # (status, cause, detail); None: not ended, or for the other's sake
        self.play = scene.Scene(os.path.join(directory, name), options, nics_of_it)

    def boot(self, end, skuad):
        self._guarded(lambda: self.play.start(end, skuad) or self.play.guest.run('hostname ' + self.name, end))

    def work(self, end, writers, before=''):
        out, err = (Prefixed(self.name, writer) for writer in writers)

        def command():
            try:
                status = self.play.guest.run(before + self.play.script(self.command), end, out, err)
            finally:
                out.close()
                err.close()
            self.outcome = status, 'command', 'status %d' % status

        self._guarded(command)

    def _guarded(self, step):
        try:
            step()
        except guest.Timeout:
            self.outcome = run.TIMEOUT, 'timeout', 'no end in time'
        except guest.GuestEnded:
            self.outcome = run.LAB, 'lab', self.play.guest.why()
        except (LabError, OSError) as error:
            self.outcome = run.LAB, 'lab', failure.told(error)[1]
        fault = self.play.guest and self.play.guest.fault
        if fault:
            self.outcome = run.KERNEL, 'kernel', fault

    def serves(self):
        """Right's command listens, or PATIENCE is over."""
        with open(self.play.guest.dmesg, 'rb') as file:
            return SERVING in file.read()


def _together(steps):
    threads = [threading.Thread(target=step, args=words, daemon=True) for step, *words in steps]
    for thread in threads:
        thread.start()
    return threads


def boot(sides, skuad, end):
    """Both guests at once. False if one did not come up."""
    for thread in _together([(side.boot, end, skuad) for side in sides]):
        thread.join()
    return not any(side.outcome for side in sides)


def _work(sides, end, writers):
    """Both commands, until both have ended or one has failed."""
    left, right = sides
    threads = _together([(right.work, end, writers, WATCH)])
    while not right.outcome and not right.serves():
        time.sleep(0.05)
    threads = _together([(left.work, end, writers)]) + threads
    while any(thread.is_alive() for thread in threads):
        for number, side in enumerate(sides):
            other = sides[1 - number]
            if side.outcome and side.outcome[0] and not other.outcome:
                other.play.guest.process.stop(grace=0)
                threads[1 - number].join()
                other.outcome = None
                return
        time.sleep(0.05)


def play(sides, skuad, seconds, writers, capture=False):
    """Boot both sides, left first, and let them work; then all ends. Returns (status, cause, detail)."""
    end = time.monotonic() + seconds
    try:
        if capture:
            skuad.capture()
        if boot(sides, skuad, end):
            say.line('guests ready after %s (%s); skuactl --socket %s' % (
                say.seconds(max(side.play.guest.ready_after for side in sides)), sides[0].play.guest.told_accelerator(),
                skuad.control))
            _work(sides, end, writers)
        if skuad.ended() is not None:
            return run.LAB, 'lab', 'skuad ended with status %d' % skuad.ended()
    finally:
        for side in sides:
            side.play.close()
        skuad.stop()
    worst = next((side for side in sides if side.outcome and side.outcome[0]), sides[0])
    status, cause, detail = worst.outcome
    return status, cause, '%s: %s' % (worst.name, detail) if status else detail


def _play(directory, options, commands, seconds, writers, result):
    both = [nics.Nic(number, text) for number, text in enumerate(options.device or ['', ''])]
    sides = [Side(name, directory, options, [nic], command)
             for name, nic, command in zip(('left', 'right'), both, commands)]
    outcome = play(sides, Skuad(both, directory), seconds, writers, options.capture)
    for side in sides:
        result[side.name].update(zip(('status', 'cause', 'detail'), side.outcome or (None, 'ended', 'the other failed')))
    return outcome


def run_pair(options, left, right, seconds, artifacts=None):
    """The whole of lab run --guests 2; returns the exit status."""
    start = time.monotonic()
    directory = run.new_directory(artifacts)
    result = {'left': {'command': left}, 'right': {'command': right}, 'kernel': options.kernel}
    writers = Writer(sys.stdout.fileno()), Writer(sys.stderr.fileno())
    try:
        outcome = _play(directory, options, (left, right), seconds, writers, result)
    except (LabError, OSError) as error:
        outcome = run.LAB, 'lab', failure.told(error)[1]
    except KeyboardInterrupt:
        outcome = 130, 'interrupted', 'by the keyboard or a signal'
    finally:
        for writer in writers:
            writer.close()
    return run.finish(directory, result, start, *outcome)
