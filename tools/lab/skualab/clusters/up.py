"""lab up: boot a cluster, and leave it behind."""

import json
import os
import signal
import sys
import time

from skualab.clusters import state
from skualab.clusters.holder import Holder
from skualab.host import failure, say
from skualab.host.say import LabError
from skualab.machines import memory
from skualab.products import kernels
from skualab.runs import scene
from skualab.target.distro import DISTRO


def _runs(cluster):
    """What another lab up is told."""
    known = cluster.read()
    if not known or not known['up']:
        return "the cluster '%s' is starting" % cluster.name
    return "the cluster '%s' is up since %s, with %s" % (
        cluster.name, time.strftime('%F %T', time.localtime(known['since'])), ', '.join(known['nodes']))


def _hold_soon(cluster):
    """Hold it, from here on in this process and its child. Another lab may just be looking whether it is held."""
    for _ in range(5):
        if cluster.hold() is not None:
            return True
        time.sleep(0.1)
    return False


def _hold(cluster, planned, options, seconds, write):
    """The child: answers by lines of JSON, each with `said`, `state` or `failed` and `status`."""
    os.setsid()
    log = os.open(os.path.join(cluster.directory, 'lab.log'), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((null, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    answers = open(write, 'w', buffering=1)
    cluster.sign()

    def tell(**what):
        answers.write(json.dumps(what) + '\n')

    holder = None
    try:
        try:
            holder = Holder(cluster, planned, options, lambda text: tell(said=text))
            holder.boot(seconds)
            tell(state=holder.state)
            answers.close()
            holder.hold()
        except KeyboardInterrupt:
            say.line('ended by a signal')
        except Exception as error:          # pylint: disable=broad-except
            status, text = failure.told(error)
            say.line(text)
            if not answers.closed:
                tell(failed=text, status=status)
    finally:
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            signal.signal(number, signal.SIG_IGN)
        if holder:
            holder.close()
        os._exit(0)


def _start(cluster, planned, options, seconds):
    """Returns the state, once all is up."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _hold(cluster, planned, options, seconds, write)
    os.close(write)
    try:
        with open(read) as answers:
            for answer in map(json.loads, answers):
                if 'said' in answer:
                    say.line(answer['said'])
                elif 'failed' in answer:
                    os.waitpid(child, 0)
                    raise LabError('%s; logs are in %s' % (answer['failed'], cluster.told()),
                                   answer['status'])
                else:
                    return answer['state']
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
        raise
    raise LabError('the process that holds the cluster ended; its log is %s/lab.log' % cluster.told())


def up(name, planned, options, seconds):
    """The whole of lab up; the exit status."""
    cluster = state.Cluster(name)
    if not _hold_soon(cluster):
        raise LabError('%s; lab down %s ends it, and --name NAME makes another' % (_runs(cluster), name))
    cluster.sign()      # for lab down, while all is built; what stood there was the id of an earlier process
    cluster.clear()
    for guest, size in zip(planned.guests, memory.fit([guest.memory for guest in planned.guests])):
        guest.memory = size
    scene.build(options.kernel if options.kernel in kernels.STAGES else DISTRO.kernel, options)
    start = time.monotonic()
    say.line("cluster '%s': %d guests boot in at most %d s" % (name, len(planned.guests), seconds))
    known = _start(cluster, planned, options, seconds)
    for node, one in known['nodes'].items():
        print('%-16s %-6s %s' % (node, one['memory'], ' '.join(one['addresses'])))
    sys.stdout.flush()
    node = planned.guests[0].name
    say.line("cluster '%s' is up after %s; enter a guest: tools/lab/lab exec %s; end all: tools/lab/lab down %s; "
             'skuactl --socket %s' % (name, say.seconds(time.monotonic() - start), node, name, known['control']))
    return 0
