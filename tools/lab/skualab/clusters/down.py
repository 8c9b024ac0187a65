"""lab down: the end of a cluster."""

import glob
import json
import os
import select
import signal
import time

from skualab.clusters import state
from skualab.host import say, sockets
from skualab.host.say import LabError
from skualab.runs import run

PATIENCE = 60       # seconds in which the process that holds a cluster ends it; and its keepers, where it does not


def _processes(known):
    """The ids of those that name its sockets: QEMU, skuad, ssh, and their keepers."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        try:
            with open(path, errors='replace') as file:
                if known['place'] + '/' in file.read():
                    found.append(path.split('/')[2])
        except OSError:
            pass        # it has ended
    return found


def _end(cluster):
    """End the process that holds it; True if it did so when it was asked."""
    try:
        pid = cluster.pid()
        process = os.pidfd_open(pid)
    except (ValueError, OSError):
        raise LabError("the process that holds the cluster '%s' is not to be seen from here; run lab down where lab up ran"
                       % cluster.name) from None
    poll = select.poll()
    poll.register(process, select.POLLIN)
    if not cluster.held():          # it is another's id by now
        return True
    signal.pidfd_send_signal(process, signal.SIGTERM)
    if poll.poll(PATIENCE * 1000):
        return True
    signal.pidfd_send_signal(process, signal.SIGKILL)
    poll.poll(PATIENCE * 1000)
    return False


def _outcome(cluster):
    """The status of what became of its guests, which it tells."""
    try:
        with open(cluster.result) as file:
            known = json.load(file)
    except FileNotFoundError:
        return 0            # it never came up
    status = run.LAB if known['fault'] else 0
    for name, node in known['nodes'].items():
        if node['fault']:
            status = run.KERNEL
        elif node['ended'] and not status:
            status = run.LAB
        if node['fault'] or node['ended']:
            say.line('%s: %s' % (name, node['ended'] or "the guest's kernel: %s" % node['fault']))
    return status


def down(name):
    """The whole of lab down; the exit status."""
    cluster = state.choose(name)
    known, held = cluster.read(), cluster.held()
    asked = _end(cluster) if held else False
    end = time.monotonic() + PATIENCE
    while known and _processes(known):
        if time.monotonic() > end:
            raise LabError('these processes of the cluster do not end: %s' % ', '.join(_processes(known)))
        time.sleep(0.05)
    sockets.prune()
    if cluster.read():
        cluster.close(cluster.read())
    status = _outcome(cluster)
    told = 'is down' if asked else '%s; what was left is removed' % ('was killed' if held else 'had ended already')
    say.line("cluster '%s' %s; its artefacts are in %s" % (cluster.name, told, cluster.told()))
    return status
