"""lab run --guests N: a command in each of several guests, with one NIC each on one wire.

The command of one of them, the server's, begins first. Those of the others start once it listens, at a TCP port or with
the connection manager, or has ended, or after PATIENCE. The first that fails ends the other guests, and its status is
the run's.
"""

import sys
import time

from skualab.host import failure, say
from skualab.host.say import LabError
from skualab.machines import ssh
from skualab.machines.nics import Nic, SPACES
from skualab.machines.skuad import Skuad
from skualab.machines.writer import Writer
from skualab.runs import run
from skualab.runs.nodes import Node, Nodes, together

PATIENCE = 5        # seconds; who serves without listening (datagrams, multicast) is ready by then
SERVING = b'skua-lab: serving'
WATCH = '''(for i in {1..%d}; do
	sleep 0.2
	[ -z "$(ss -Hltn 'sport != :%d')" ] && ! rdma resource show cm_id 2>/dev/null | grep -q LISTEN || break
done; echo "<5>skua-lab: serving" >/dev/kmsg) </dev/null >/dev/null 2>&1 &
''' % (PATIENCE * 5, ssh.PORT)


def _serves(node):
    """Its command listens, or PATIENCE is over."""
    with open(node.play.guest.dmesg, 'rb') as file:
        return SERVING in file.read()


def _work(nodes, server, end, writers):
    """All commands, until all have ended or one has failed."""
    width = max(len(node.name) for node in nodes)
    threads = {server: together([(server.work, end, writers, WATCH, width)])[0]}
    while not server.outcome and not _serves(server):
        time.sleep(0.05)
    others = [node for node in nodes if node is not server]
    threads.update(zip(others, together((node.work, end, writers, '', width) for node in others)))
    while any(thread.is_alive() for thread in threads.values()):
        if any(node.failed() for node in nodes):
            _end([node for node in nodes if not node.outcome], threads)
            return
        time.sleep(0.05)


def _end(nodes, threads):
    """The guests of these end, for the sake of one that failed."""
    for node in nodes:
        node.play.guest.process.stop(grace=0)
    for node in nodes:
        threads[node].join()
        node.outcome = None


def play(nodes, server, seconds, writers, capture=False):
    """Boot all, and let them work; then all ends. Returns (status, cause, detail)."""
    end = time.monotonic() + seconds
    skuad = nodes.skuad
    with nodes:
        if capture:
            skuad.capture()
        if nodes.boot(end):
            plays = [node.play for node in nodes]
            say.line('guests ready after %s (%s); skuactl --socket %s' % (
                say.seconds(max(one.guest.ready_after for one in plays)), plays[0].guest.told_accelerator(),
                skuad.control))
            _work(list(nodes), nodes[server], end, writers)
        if skuad.ended() is not None:
            return run.LAB, 'lab', 'skuad ended with status %d' % skuad.ended()
    worst = next((node for node in nodes if node.failed()), next(iter(nodes)))
    status, cause, detail = worst.outcome
    return status, cause, '%s: %s' % (worst.name, detail) if status else detail


def _nic(number, name, text):
    """Left and right have the NICs of one guest that has both; others are alike."""
    return Nic(number, text) if name in SPACES else Nic(number, text, name, 0)


def _play(directory, options, commands, server, seconds, writers, result):
    texts = options.device or [''] * len(commands)
    nics = [_nic(number, name, text) for number, (name, text) in enumerate(zip(commands, texts))]
    options.hosts, options.keys = [(nic.ipv4, name) for nic, name in zip(nics, commands)], ssh.Keys()
    nodes = [Node(name, directory, options, [nic], command) for (name, command), nic in zip(commands.items(), nics)]
    outcome = play(Nodes(nodes, Skuad(nics, directory)), server, seconds, writers, options.capture)
    for node in nodes:
        result[node.name].update(zip(('status', 'cause', 'detail'), node.outcome or (None, 'ended', 'another failed')))
    return outcome


def run_together(options, commands, server, seconds, artifacts=None):
    """The whole of lab run --guests N; commands: a list of words for each guest, by its name; server: the name of
    the one that begins first. Returns the exit status."""
    start = time.monotonic()
    directory = run.new_directory(artifacts)
    result = {name: {'command': command} for name, command in commands.items()}
    result['kernel'] = options.kernel
    writers = Writer(sys.stdout.fileno()), Writer(sys.stderr.fileno())
    try:
        outcome = _play(directory, options, commands, server, seconds, writers, result)
    except (LabError, OSError) as error:
        outcome = run.LAB, 'lab', failure.told(error)[1]
    except KeyboardInterrupt:
        outcome = 130, 'interrupted', 'by the keyboard or a signal'
    finally:
        for writer in writers:
            writer.close()
    return run.finish(directory, result, start, *outcome)
