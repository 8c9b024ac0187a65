"""lab exec NODE: a command, or a shell, in a guest of a cluster that is up."""

import os
import subprocess
import sys
import time

from skualab.clusters import login, state
from skualab.host import say
from skualab.host.say import LabError
from skualab.runs import run, scene

SESSION = '/usr/lib/skua-lab/session'
BROKEN = 255        # of ssh: the connection has ended, or the command's own


def _in_foreground():
    """Whether we may use the terminal that is our standard input. A job in the background would be stopped."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:     # it is not the terminal that controls us, so we are no job of it
        return True


def _known(cluster):
    """Its state, while it is up."""
    known = cluster.read()
    if not cluster.held():
        raise LabError("the cluster '%s' has ended: its process was killed, or this host has rebooted; lab down %s removes "
                       'what is left' % (cluster.name, cluster.name))
    if not known or not known['up']:
        raise LabError("the cluster '%s' is starting" % cluster.name)
    return known


def _ended(cluster, name):
    """LabError if a guest, or all, has ended."""
    node = _known(cluster)['nodes'][name]
    if node['ended']:
        raise LabError('%s has ended: %s; its logs are in %s/%s' % (name, node['ended'], cluster.told(), name),
                       run.KERNEL if node['fault'] else run.LAB)


def execute(name, node, command, seconds=None):
    """The whole of lab exec; the exit status."""
    cluster = state.choose(name)
    known = _known(cluster)
    if node not in known['nodes']:
        raise LabError("the cluster '%s' has no guest '%s'; its guests are %s" % (
            cluster.name, node, ', '.join(known['nodes'])))
    _ended(cluster, node)
    if known['fault']:
        say.line('%s; the NICs are gone' % known['fault'])
    stdin = subprocess.DEVNULL if sys.stdin.isatty() and not _in_foreground() else None
    tty = stdin is None and sys.stdin.isatty() and sys.stdout.isatty()
    words = command or (['bash', '-i'] if tty else ['bash'])
    script = scene.script(words if tty else [SESSION, *words], known['env'], known['share'])
    status = login.enter(login.path(known['place'], node), node, script, tty, seconds, stdin)
    if status is None:
        raise LabError('the command did not end within %d s' % seconds, run.TIMEOUT)
    if status == BROKEN:
        time.sleep(1)       # the process that holds the cluster may be about to notice
        _ended(cluster, node)
    return status
