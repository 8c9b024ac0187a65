"""make run: a guest with two Skua NICs, stock programs between them, and one table; then two guests
with one NIC each, which find each other by address with the connection manager.

A row is a stock program's figure; `data` says whether rdma_traffic, with messages of the same
operation and size, found every byte right (ibv_rc_pingpong -c looks at its own data); `sent by`
and `received by` are what the NICs themselves counted during the row.
"""

import contextlib
import sys
import time

from skualab.host import say
from skualab.host.say import LabError
from skualab.machines import guest, nics
from skualab.machines.nics import SPACES
from skualab.machines.skuad import Skuad
from skualab.runs import perftest, run, scene
from skualab.runs.nodes import Node, Nodes

SECONDS = 60        # no row may take longer
REST = 5            # nor, after it, the last frames
FORM = '  %-19s %-8s %-13s %-6s %-17s %s'


class Row:
    def __init__(self, program, options, size, operation=None, sender=None):
        self.program, self.options, self.size = program, options, size
        self.operation = operation      # of rdma_traffic's check; None: the program checks
        self.sender = sender            # the NIC that sends the data; None: both do

    def name(self):
        return self.program + (' -e' if '-e' in self.options.split() else '')

    def script(self):
        return perftest.script(perftest.SKUA, self.program, self.size, self.options)

    def result(self, output):
        value = perftest.result(self.program, self.size, output)
        return perftest.rate(value) if self.program.endswith('_bw') else perftest.time(value)

    def check(self):
        """A script that sends the same again, and looks at every byte; or none."""
        if self.operation:
            return 'left rdma_traffic -Q -q 1 -o %s -s %d -n 500 skua_0 skua_1' % (self.operation, self.size)
        return None


ROWS = [
    Row('ibv_rc_pingpong', '-n 2000', 4096),
    Row('ibv_rc_pingpong', '-n 2000 -e', 4096),
    Row('ib_send_bw', '-n 5000', 65536, 'send', sender='skua_0'),
    Row('ib_write_bw', '-n 5000', 65536, 'write', sender='skua_0'),
    Row('ib_read_bw', '-n 5000', 65536, 'read', sender='skua_1'),
    Row('ib_send_lat', '-n 1000', 8, 'send'),
    Row('ib_write_lat', '-n 1000', 8, 'write'),
    Row('ib_read_lat', '-n 10000', 8, 'read'),
]


# What right and left run, with the connection manager; the figures are left's.
ACROSS = [
    ('rping', 'rping -s -a 192.0.2.2 -C 200 -S 4096 -V', 'rping -c -a 192.0.2.2 -C 200 -S 4096 -V', 4096),
    ('ib_write_bw', 'listen-first ib_write_bw -R -d skua_1 -s 65536 -n 5000', 'ib_write_bw -R -d skua_0 -s 65536 -n 5000 192.0.2.2', 65536),
    ('ib_send_lat', 'listen-first ib_send_lat -R -d skua_1 -s 8 -n 1000', 'ib_send_lat -R -d skua_0 -s 8 -n 1000 192.0.2.2', 8),
]


@contextlib.contextmanager
def _told(play):
    """What ends a guest before its time, in one line, with lab run's status."""
    try:
        yield
        if play.guest.fault:
            raise guest.GuestEnded()
    except guest.Timeout:
        raise LabError('the guest did not finish in time; its logs are in %s' % play.directory, run.TIMEOUT) from None
    except guest.GuestEnded:
        raise LabError('%s; its logs are in %s' % (play.guest.why(), play.directory),
                       run.KERNEL if play.guest.fault else run.LAB) from None


def _in_guest(play, script):
    with _told(play):
        status, output = play.guest.output(script, scene.deadline(SECONDS))
    if status:
        raise LabError('a command in the guest failed: %s' % (output.strip().splitlines() or ['status %d' % status])[-1])
    return output


def _amount(count):
    for unit, size in (('GB', 1e9), ('MB', 1e6), ('kB', 1e3)):
        if count >= size:
            return '%.1f %s' % (count / size, unit)
    return '%d B' % count


def _at_rest(skuad, program):
    """The NICs' counters once each NIC has received what the other has sent. A program ends before the connection
    manager has said goodbye."""
    end = time.monotonic() + REST
    while True:
        counters = skuad.counters()
        left, right = counters['skua0'], counters['skua1']
        unequal = [pair for pair in ((left['rdma_tx_bytes'], right['rdma_rx_bytes']),
                                     (right['rdma_tx_bytes'], left['rdma_rx_bytes'])) if pair[0] != pair[1]]
        if not unequal:
            return counters
        if time.monotonic() > end:
            raise LabError('%s: one NIC counts %d bytes sent, the other %d received' % (program, *unequal[0]))
        time.sleep(0.1)


def _traffic(before, after, row):
    """What went over the wire, by the NICs' counters: (sent by, received by)."""
    left, right = (after[name]['rdma_tx_bytes'] - before[name]['rdma_tx_bytes'] for name in ('skua0', 'skua1'))
    sent = {'skua_0': left, 'skua_1': right}
    if row.sender:
        other, = set(sent) - {row.sender}
        if sent[row.sender] <= sent[other]:
            raise LabError('%s: %s should have sent the data, and sent %d bytes; %s sent %d'
                           % (row.program, row.sender, sent[row.sender], other, sent[other]))
        return '%s %s' % (row.sender, _amount(sent[row.sender])), other
    return 'both %s' % _amount(sum(sent.values())), 'both'


def demo(series):
    directory = run.new_directory()
    with scene.Scene(directory, scene.Options(kernel=series)) as play:
        with _told(play):
            play.start(scene.deadline(scene.BOOT))
        say.line('guest ready after %s (%s)' % (say.seconds(play.guest.ready_after), play.guest.told_accelerator()))
        print(_in_guest(play, 'ibv_devinfo').rstrip())
        release = _in_guest(play, 'uname -r').strip()
        print('\nskua_0 (left, 192.0.2.1)  <- wire a ->  skua_1 (right, 192.0.2.2)     kernel %s, %s\n'
              % (release, play.guest.accelerator))
        print(FORM % ('test', 'size', 'result', 'data', 'sent by', 'received by'))
        for row in ROWS:
            before = _at_rest(play.skuad, row.program)
            result = row.result(_in_guest(play, row.script()))
            sent_by, received_by = _traffic(before, _at_rest(play.skuad, row.program), row)
            if row.check():
                _in_guest(play, row.check())
            print(FORM % (row.name(), perftest.size(row.size), result, 'ok', sent_by, received_by))
            sys.stdout.flush()
        print(FORM % ('rdma_traffic', '0-1 MiB', *_mixed(play)))
    _across(series)
    return 0


def _across(series):
    """The same wire between two guests."""
    directory = run.new_directory()
    both = [nics.Nic(0), nics.Nic(1)]
    options = scene.Options(kernel=series, netns='alone', cpus=1, memory='1G')
    nodes = [Node(name, directory, options, [nic]) for name, nic in zip(SPACES, both)]
    with Nodes(nodes, Skuad(both, directory)) as pair:
        pair.must_boot(scene.deadline(scene.BOOT))
        print('\nskua_0 (guest left, 192.0.2.1)  <- wire a ->  skua_1 (guest right, 192.0.2.2)\n')
        left, right = (node.play for node in pair)
        for program, server, client, size in ACROSS:
            before = _at_rest(pair.skuad, program)
            with _told(right):
                right.guest.start('exec %s' % server, scene.deadline(SECONDS))
            _in_guest(right, 'until rdma resource show cm_id | grep -q LISTEN; do sleep 0.05; done')
            output = _in_guest(left, client)
            figure = '200 pings' if program == 'rping' else Row(program, '', size).result(output)
            checks = program == 'rping'     # rping -V compares; perftest does not
            print(FORM % (program + (' -V' if checks else ' -R'), perftest.size(size), figure, 'ok' if checks else '-',
                          *_traffic(before, _at_rest(pair.skuad, program), Row(program, '', size))))
            sys.stdout.flush()


def _mixed(play):
    """All operations and sizes on 16 QPs, by rdma_traffic alone."""
    before = _at_rest(play.skuad, 'rdma_traffic')
    words = _in_guest(play, 'left rdma_traffic -Q -q 16 -b 512M skua_0 skua_1').split()
    operations, seconds = int(words[0]), float(words[words.index('in') + 1])
    sent_by, received_by = _traffic(before, _at_rest(play.skuad, 'rdma_traffic'), Row('rdma_traffic', '', 0))
    return '%.0f op/s' % (operations / seconds), 'ok', sent_by, received_by
