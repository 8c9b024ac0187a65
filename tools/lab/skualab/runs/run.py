"""lab run: a fresh guest, a command in it, and its exit status.

Statuses of the lab's own: 124 timeout, 125 the lab failed, 126 the guest's kernel panicked, hung
or printed a warning. Last line and result.json say which it was, so that a command whose own
status is one of these can be told apart.
"""

import json
import os
import shutil
import sys
import tempfile
import time

from skualab.host import failure, paths, say
from skualab.host.say import LabError
from skualab.machines import guest
from skualab.machines.writer import Writer
from skualab.roots import root
from skualab.runs import debugger, scene

TIMEOUT, LAB, KERNEL = 124, 125, 126
KEEP = 20       # directories of past runs


def new_directory(artifacts=None):
    if artifacts:
        try:
            os.makedirs(artifacts, exist_ok=True)
        except OSError as error:
            raise LabError('--artifacts: the directory cannot be made: %s: %s' % (artifacts, error.strerror)) from None
        return os.path.realpath(artifacts)
    os.makedirs(paths.RUNS, exist_ok=True)
    old = sorted((os.path.join(paths.RUNS, name) for name in os.listdir(paths.RUNS)), key=os.path.getmtime)
    for path in old[:-KEEP]:
        # One that is in use has its guest's files open and new; only old ones go.
        if time.time() - os.path.getmtime(path) > 86400:
            shutil.rmtree(path, ignore_errors=True)
    return tempfile.mkdtemp(prefix=time.strftime('%m%d-%H%M%S-'), dir=paths.RUNS)


def _play(directory, options, command, seconds, result):
    """Returns (status, cause, detail)."""
    play = None
    out, err = Writer(sys.stdout.fileno()), Writer(sys.stderr.fileno())
    try:
        try:
            play = scene.Scene(directory, options)
            # Building has budgets of its own, and whoever debugs has time.
            end = scene.deadline(scene.DAY if options.gdb else seconds)
            play.start(end)
            result['accelerator'] = play.guest.accelerator
            result['ready_seconds'] = round(play.guest.ready_after, 1)
            say.line('guest ready after %s (%s)%s' % (
                say.seconds(play.guest.ready_after), play.guest.told_accelerator(),
                '; skuactl --socket %s' % play.skuad.control if play.skuad else ''))
            if play.skuad:
                result['skuad_kib'] = [play.skuad.process.memory_kib()]
            if options.gdb:
                debugger.tell(play, end)
                debugger.wait(play)
            start = time.monotonic()
            status = play.guest.run(play.script(command), end, out, err)
            result['command_seconds'] = round(time.monotonic() - start, 2)
            if play.skuad and play.skuad.ended() is None:
                result['skuad_kib'].append(play.skuad.process.memory_kib())
            if play.guest.fault:
                return KERNEL, 'kernel', play.guest.fault
            if play.skuad and play.skuad.ended() is not None:
                return LAB, 'lab', 'skuad ended with status %d' % play.skuad.ended()
            return status, 'command', 'status %d' % status
        except guest.Timeout:
            return TIMEOUT, 'timeout', 'the command did not end within %d s; --timeout gives it more' % seconds
        except guest.GuestEnded:
            if play.guest.fault:
                return KERNEL, 'kernel', play.guest.fault
            return LAB, 'lab', '%s%s' % (
                play.guest.why(),
                ', skuad with %s' % play.skuad.ended() if play.skuad and play.skuad.ended() is not None else '')
        except (LabError, OSError) as error:
            if play and play.guest and play.guest.fault:
                return KERNEL, 'kernel', play.guest.fault
            return LAB, 'lab', failure.told(error)[1]
        finally:
            if play:
                play.close()
    finally:
        out.close()
        err.close()


def run(options, command, seconds, artifacts=None):
    """The whole of lab run; returns the exit status."""
    start = time.monotonic()
    directory = new_directory(artifacts)
    result = {'command': command, 'kernel': options.kernel, 'netns': options.netns}
    try:
        status, cause, detail = _play(directory, options, command, seconds, result)
    except KeyboardInterrupt:
        status, cause, detail = 130, 'interrupted', 'by the keyboard or a signal'
    return finish(directory, result, start, status, cause, detail)


def finish(directory, result, start, status, cause, detail):
    """Leave result.json, say the last line; returns the status."""
    result.update(status=status, cause=cause, detail=detail, seconds=round(time.monotonic() - start, 1))
    if os.path.exists(root.VERSIONS):
        result['versions'] = root.told()
    with open(os.path.join(directory, 'result.json'), 'w') as file:
        json.dump(result, file, indent=1)
        file.write('\n')
    told = detail if cause == 'command' else '%d %s: %s' % (status, cause, detail)
    say.line('%s (%s; artefacts in %s)' % (told, say.seconds(result['seconds']), os.path.relpath(directory)))
    return status
