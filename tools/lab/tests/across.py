"""Programs between two guests: a server in one, a client in the other, and one outcome of both."""

import contextlib

from skualab.host import paths
from skualab.host.say import LabError
from skualab.machines import nics, ssh
from skualab.machines.guest import GuestEnded, Timeout
from skualab.machines.skuad import Skuad
from skualab.products import kernels, programs, stages
from skualab.runs import run, scene
from skualab.runs.nodes import Node, Nodes
from skualab.target.distro import DISTRO

SECONDS = 240        # for one program
SERVE = '(%s) >/tmp/served 2>&1 </dev/null; echo $? >/tmp/ended'
# A guest of the lab listens to nothing else.
LISTENS = '''for i in {1..400}; do
	[ -z "$(ss -Hltn)" ] || exit 0
	! rdma resource show cm_id 2>/dev/null | grep -q LISTEN || exit 0
	[ ! -e /tmp/ended ] || break
	sleep 0.05
done
echo 'the server does not listen'
exit 1'''
ENDED = 'until [ -e /tmp/ended ]; do sleep 0.05; done; cat /tmp/served; exit $(</tmp/ended)'


def slowness(kernel):
    """How many times as long things may take in a kernel: one that finds faults is slow."""
    return 10 if kernel in kernels.DEBUG else 1


def memory(kernel):
    """Of a guest with this kernel."""
    return '3G' if kernel in kernels.DEBUG else '1G'


@contextlib.contextmanager
def guests(nodes, skuad):
    """The guests of nodes, while they are up. The kernel of none may have told of a fault by the end."""
    with Nodes(nodes, skuad) as up:
        up.must_boot(scene.deadline(scene.BOOT))
        yield up.guests()
        for node in up:
            must_be_sound(node.name, node.play.guest)


def must_be_sound(name, guest):
    """All that its kernel has said is looked at; a guest that was ended has said all."""
    if guest.process.ended() is None:
        guest.output('true', scene.deadline(60))
    if guest.fault:
        raise LabError('%s: %s' % (name, guest.fault))


@contextlib.contextmanager
def cluster(number, kernel, rdma_core=DISTRO.rdma_core, memory='1G'):
    """So many guests, node1 and so on, on one wire, that log in to each other and share the selftests. Each calls its
    NIC the same, since programs are told one name for all."""
    for stage in [*stages.guest(kernel, rdma_core), programs.SELFTESTS_STAGE]:
        stage.run()
    directory = run.new_directory()
    # librpma uses FLUSH only with a NIC that offers both kinds.
    theirs = [nics.Nic(at, 'persistent=on', name='node%d' % (at + 1), index=0) for at in range(number)]
    options = scene.Options(kernel=kernel, rdma_core=rdma_core, netns='alone', cpus=1, memory=memory,
                            share=paths.SELFTESTS, hosts=[(nic.ipv4, nic.name) for nic in theirs],
                            keys=ssh.Keys())
    with guests([Node(nic.name, directory, options, [nic]) for nic in theirs], Skuad(theirs, directory)) as up:
        yield up


def must(guest, script):
    """Run a script in a guest that has to end well."""
    status, output = guest.output(script, scene.deadline(60))
    if status:
        raise LabError('in a guest: ' + output)


def both(server, serves, client, asks, ready=LISTENS, seconds=SECONDS):
    """Scripts in two guests: the client's once the server listens, or the script ready ends well there.
    Returns what was wrong, a fault of a kernel, too, or None, and the client's output."""
    end = scene.deadline(seconds + 30)
    server.run('rm -f /tmp/ended', end)
    server.start(SERVE % _bounded(serves, seconds), end)
    status, said = server.output(ready, end)
    if not status:
        status, said = client.output(_bounded(asks, seconds), end)
    else:
        server.run('touch /tmp/ended', end)
    other, served = server.output(ENDED, end)
    if status or other:
        return 'status %d: %s; server %d: %s' % (status, _last(said), other, _last(served)), said
    return client.fault or server.fault, said


def _bounded(script, seconds):
    return 'timeout %d %s' % (seconds, script)


def _last(text):
    return (text.strip().splitlines() or ['nothing said'])[-1]


class Matrix:
    """Rows by what was tried, columns by between whom; a cell is a result, or what was wrong."""

    def __init__(self):
        self.rows, self.columns = {}, []
        self.passed = self.failed = 0

    def note(self, row, column, text):
        """A result that is shown, but is no test."""
        if column not in self.columns:
            self.columns.append(column)
        self.rows.setdefault(row, {})[column] = text

    def add(self, row, column, result, wrong=None):
        self.note(row, column, 'WRONG' if wrong else result)
        self.passed, self.failed = self.passed + (not wrong), self.failed + bool(wrong)
        print('%s, %s: %s' % (row, column, wrong or result), flush=True)

    @contextlib.contextmanager
    def guarded(self, row):
        """What ends all that is tried in some guests fails in this row, and what was tried before is still shown."""
        try:
            yield
        except (LabError, GuestEnded, Timeout) as error:
            self.add(row, 'guests', '', str(error))

    def show(self):
        lines = [('', *self.columns), *((row, *(cells.get(column, '-') for column in self.columns))
                                        for row, cells in self.rows.items())]
        widths = [max(map(len, column)) for column in zip(*lines)]
        print()
        for line in lines:
            print('  '.join(map(str.ljust, line, widths)).rstrip())
        print('\n%d passed, %d failed, 0 skipped' % (self.passed, self.failed))
        return 1 if self.failed or not self.passed else 0
