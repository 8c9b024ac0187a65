"""lab shell: a guest with both NICs up, and a shell in it on this terminal."""

import os
import shlex
import shutil
import sys
import termios

from skualab.host import say
from skualab.machines import guest
from skualab.machines.writer import Writer
from skualab.runs import debugger, run, scene

GREETING = '''
Two Skua NICs on one wire: skua_0 (left, 192.0.2.1) and skua_1 (right, 192.0.2.2).
  left CMD..., right CMD...    run a command there, for instance
  right ibv_rc_pingpong -d skua_1 -g 1 & left ibv_rc_pingpong -d skua_0 -g 1 192.0.2.2
exit, or Ctrl-D, ends the guest.
'''


def _outcome(play, status):
    """The exit status of the lab after a shell."""
    if play.guest.fault:
        say.line("the guest's kernel: %s" % play.guest.fault)
        return run.KERNEL
    if play.skuad and play.skuad.ended() is not None:
        say.line('skuad ended with status %d' % play.skuad.ended())
        return run.LAB
    return status


def _without_terminal(play, deadline):
    """A script on standard input: the same as lab run with it."""
    out, err = Writer(1), Writer(2)
    try:
        return play.guest.run(play.script(['bash', '-c', sys.stdin.read()]), deadline, out, err)
    finally:
        out.close()
        err.close()


def shell(options, artifacts=None):
    """The whole of lab shell; returns the exit status."""
    tty = sys.stdin.isatty()
    options.tty = tty
    directory = run.new_directory(artifacts)
    before = termios.tcgetattr(sys.stdin) if tty else None
    day = scene.deadline(scene.DAY)
    try:
        with scene.Scene(directory, options) as play:
            play.start(scene.deadline(scene.BOOT))
            if play.skuad:
                say.line('to control skuad: tools/lab/lab skuactl --socket %s devices' % play.skuad.control)
            if options.gdb:
                debugger.tell(play, day)
            if not tty:
                return _outcome(play, _without_terminal(play, day))
            size = shutil.get_terminal_size()
            words = play.script(['bash', '-i']).replace('exec ', 'exec setsid -c ')
            script = 'exec <>/dev/hvc0 >&0 2>&0\nstty sane rows %d cols %d\nexport TERM=%s\n' % (
                size.lines, size.columns, shlex.quote(os.environ.get('TERM', 'linux')))
            if options.nics and not options.device and options.netns == 'split':
                script += 'cat <<"END"\n%s\nEND\n' % GREETING.strip()
            return _outcome(play, play.guest.run(script + words, day, None, None))
    except guest.GuestEnded:
        say.line('the guest ended: %s' % play.guest.why())
        return run.KERNEL if play.guest.fault else run.LAB
    except guest.Timeout:
        say.line('the guest did not come up within %d s; its logs are in %s' % (scene.BOOT, directory))
        return run.TIMEOUT
    finally:
        if before:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
