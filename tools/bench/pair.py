# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two guests with one processor each, joined twice: by Skua NICs, and by virtio-net NICs with rdma_rxe. What uses one of
the transports is measured with fio, and compared."""

import contextlib
import json

from skualab.host import paths, say
from skualab.machines import nics, ssh
from skualab.machines.skuad import Skuad
from skualab.runs import scene
from skualab.runs.nodes import Node, Nodes

SIDES = 'left', 'right'
LINKS = ('server=off,addr.type=unix,addr.path=%s/virtio,reconnect-ms=500',
         'server=on,addr.type=unix,addr.path=%s/virtio')
MTU = 9000
VIRTIO = '''set -e
modprobe virtio_net
until [ -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip address add 198.51.100.{number}/24 dev eth0
ip link set eth0 mtu {mtu} up
ip link set skua0 mtu {mtu}
modprobe rdma_rxe
rdma link add rxe0 type rxe netdev eth0
'''
# Type, address of the right side.
TRANSPORTS = {'skua': ('rdma', '192.0.2.2'), 'rxe': ('rdma', '198.51.100.2'),
              'tcp virtio': ('tcp', '198.51.100.2'), 'tcp skua': ('tcp', '192.0.2.2')}
SECONDS, RAMP = 8, 2
# What fio itself does for an operation is kept small: it is the same over each transport, and hides how they differ.
FIO = ('fio --name=bench --filename={path} --direct=1 {engine} --gtod_reduce=1 --norandommap --time_based '
       '--ramp_time=%d --runtime=%d --size=64M --output-format=json --output=/tmp/fio --rw={way} --bs={size} '
       '--iodepth={depth} >/tmp/said 2>&1 && cat /tmp/fio || {{ cat /tmp/said; exit 1; }}' % (RAMP, SECONDS))
# What, fio's words for it, whether its figure is in bytes a second instead of operations.
ROWS = [('random read, 4 KiB, depth 1', 'randread', '4k', 1, False),
        ('random read, 4 KiB, depth 32', 'randread', '4k', 32, False),
        ('read, 128 KiB, depth 32', 'read', '128k', 32, True),
        ('write, 128 KiB, depth 32', 'write', '128k', 32, True)]


class Pair:
    """user and server are guests; processes are those that take a processor for them, by name."""

    def __init__(self, user, server, skuad):
        self.user, self.server = user, server
        self.processes = {'user': user.process, 'server': server.process, 'skuad': skuad.process}

    def measure(self, path, engine='--ioengine=libaio'):
        """{row: {'figure': operations or bytes a second, 'cost': microseconds of a processor for an operation, by
        process}} of the file or disk of this name in the user's guest; @engine: how fio submits and completes."""
        found = {}
        for name, way, size, depth, in_bytes in ROWS:
            before = {who: process.cpu_seconds() for who, process in self.processes.items()}
            command = FIO.format(path=path, engine=engine, way=way, size=size, depth=depth)
            job, = json.loads(must(self.user, command))['jobs']
            done = job['write' if way == 'write' else 'read']
            operations = done['iops'] * (SECONDS + RAMP)
            found[name] = {'figure': done['bw_bytes' if in_bytes else 'iops'],
                           'cost': {who: 1e6 * (process.cpu_seconds() - before[who]) / operations
                                    for who, process in self.processes.items()}}
            say.line('%s, %s: %g' % (path, name, found[name]['figure']))
        return found


def must(guest, script, seconds=120):
    """What the script says, which has to end well."""
    status, output = guest.output(script, scene.deadline(seconds))
    if status:
        raise say.LabError('between two guests: status %d: %s' % (status, output.strip()[-500:]))
    return output


@contextlib.contextmanager
def up(directory, kernel, memory='1G'):
    """A Pair, while it is up; @memory: of each guest."""
    both = [nics.Nic(number, name=side, index=0) for number, side in enumerate(SIDES)]
    skuad, keys, nodes = Skuad(both, directory), ssh.Keys(), []
    for number, side in enumerate(SIDES):
        virtio = ['-netdev', 'stream,id=n0,' + LINKS[number] % skuad.place, '-device',
                  'virtio-net-pci,netdev=n0,mac=02:00:00:00:01:0%d,host_mtu=%d' % (number + 1, MTU)]
        options = scene.Options(kernel=kernel, netns='alone', cpus=1, memory=memory, qemu=virtio, share=paths.SELFTESTS,
                                hosts=[(nic.ipv4, nic.name) for nic in both], keys=keys)
        nodes.append(Node(side, directory, options, [both[number]]))
    with Nodes(nodes, skuad) as both_up:
        both_up.must_boot(scene.deadline(scene.BOOT))
        user, server = both_up.guests()
        for number, guest in enumerate((user, server)):
            must(guest, VIRTIO.format(number=number + 1, mtu=MTU))
        yield Pair(user, server, skuad)


def show(title, found):
    """@found: {transport: Pair.measure()}. What of a processor the QEMUs of both guests and skuad take."""
    form = '  %-38s' + ' %16s' * len(TRANSPORTS)
    print('\n' + form % (title + ', us: user, server, skuad', *TRANSPORTS))
    for name, *_ in ROWS:
        costs = [found[transport][name]['cost'].values() for transport in TRANSPORTS]
        print((form % (name, *(', '.join('%.0f' % cost for cost in each) for each in costs))).rstrip())
