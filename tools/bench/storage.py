# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""NVMe over Fabrics between two guests: over Skua NICs, over rdma_rxe, and over TCP. The target's disk is null_blk,
which stores nothing, so the figures are those of the transports. rdma_rxe and one TCP use virtio-net NICs that a socket
of QEMU's joins; the other TCP uses the Skua NICs' netdevs."""

import json

from skualab.host import say
from skualab.machines import nics
from skualab.machines.skuad import Skuad
from skualab.runs import scene
from skualab.runs.nodes import Node, Nodes

SIDES = 'left', 'right'
LINKS = ('server=off,addr.type=unix,addr.path=%s/virtio,reconnect-ms=500',
         'server=on,addr.type=unix,addr.path=%s/virtio')
MTU = 9000
NAME = 'nqn.2026-01.org.skua:bench'
VIRTIO = '''set -e
modprobe virtio_net
until [ -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip address add 198.51.100.{number}/24 dev eth0
ip link set eth0 mtu {mtu} up
ip link set skua0 mtu {mtu}
modprobe rdma_rxe
rdma link add rxe0 type rxe netdev eth0
'''
# Transport: type, address, service.
TRANSPORTS = {'skua': ('rdma', '192.0.2.2', 4420), 'rxe': ('rdma', '198.51.100.2', 4420),
              'tcp virtio': ('tcp', '198.51.100.2', 4421), 'tcp skua': ('tcp', '192.0.2.2', 4421)}
SERVE = '''set -e
modprobe null_blk nr_devices=1 gb=1 queue_mode=2 irqmode=0
modprobe -a nvmet-rdma nvmet-tcp
cd /sys/kernel/config/nvmet
mkdir subsystems/{name} subsystems/{name}/namespaces/1
echo 1 >subsystems/{name}/attr_allow_any_host
echo -n /dev/nullb0 >subsystems/{name}/namespaces/1/device_path
echo 1 >subsystems/{name}/namespaces/1/enable
'''
PORT = '''
mkdir ports/{id}
echo ipv4 >ports/{id}/addr_adrfam
echo {type} >ports/{id}/addr_trtype
echo {address} >ports/{id}/addr_traddr
echo {service} >ports/{id}/addr_trsvcid
ln -s $PWD/subsystems/{name} ports/{id}/subsystems/
'''
CONNECT = '''set -e
modprobe -a nvme-rdma nvme-tcp
nvme connect -t {type} -a {address} -s {service} -n {name} >/dev/null
until [ -b /dev/nvme0n1 ]; do sleep 0.1; done
'''
DISCONNECT = '''nvme disconnect -n {name} >/dev/null
while [ -e /dev/nvme0n1 ]; do sleep 0.1; done
'''.format(name=NAME)
SECONDS, RAMP = 8, 2
FIO = ('fio --name=bench --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --time_based --ramp_time=%d '
       '--runtime=%d --output-format=json --output=/tmp/fio --rw={way} --bs={size} --iodepth={depth} >/tmp/said 2>&1 '
       '&& cat /tmp/fio || {{ cat /tmp/said; exit 1; }}' % (RAMP, SECONDS))
# What, fio's words for it, whether its figure is in bytes a second instead of operations.
ROWS = [('random read, 4 KiB, depth 1', 'randread', '4k', 1, False),
        ('random read, 4 KiB, depth 32', 'randread', '4k', 32, False),
        ('read, 128 KiB, depth 32', 'read', '128k', 32, True),
        ('write, 128 KiB, depth 32', 'write', '128k', 32, True)]


def _must(guest, script, seconds=120):
    status, output = guest.output(script, scene.deadline(seconds))
    if status:
        raise say.LabError('NVMe over Fabrics: %s' % output.strip()[-500:])
    return output


def _figure(guest, row):
    """(operations or bytes a second, all operations)"""
    _, way, size, depth, in_bytes = row
    job, = json.loads(_must(guest, FIO.format(way=way, size=size, depth=depth)))['jobs']
    done = job['write' if way == 'write' else 'read']
    return done['bw_bytes' if in_bytes else 'iops'], done['iops'] * (SECONDS + RAMP)


def _transport(guest, name, processes):
    """The figures of one transport, by row, and the microseconds of a processor that each process takes for an
    operation."""
    kind, address, service = TRANSPORTS[name]
    _must(guest, CONNECT.format(type=kind, address=address, service=service, name=NAME))
    found = {}
    for row in ROWS:
        before = {who: process.cpu_seconds() for who, process in processes.items()}
        figure, operations = _figure(guest, row)
        cost = {who: 1e6 * (process.cpu_seconds() - before[who]) / operations for who, process in processes.items()}
        found[row[0]] = {'figure': figure, 'cost': cost}
        say.line('%s, %s: %g' % (row[0], name, figure))
    _must(guest, DISCONNECT)
    return found


def measure(directory, kernel):
    """{transport: {row: {'figure': ..., 'cost': ...}}}"""
    both = [nics.Nic(number, name=side, index=0) for number, side in enumerate(SIDES)]
    skuad = Skuad(both, directory)
    nodes = []
    for number, side in enumerate(SIDES):
        virtio = ['-netdev', 'stream,id=n0,' + LINKS[number] % skuad.place, '-device',
                  'virtio-net-pci,netdev=n0,mac=02:00:00:00:01:0%d,host_mtu=%d' % (number + 1, MTU)]
        options = scene.Options(kernel=kernel, netns='alone', cpus=1, memory='1G', qemu=virtio)
        nodes.append(Node(side, directory, options, [both[number]]))
    with Nodes(nodes, skuad) as up:
        up.must_boot(scene.deadline(scene.BOOT))
        host, target = up.guests()
        for number, guest in enumerate((host, target)):
            _must(guest, VIRTIO.format(number=number + 1, mtu=MTU))
        ports = [PORT.format(id=number, type=kind, address=address, service=service, name=NAME)
                 for number, (kind, address, service) in enumerate(TRANSPORTS.values())]
        _must(target, SERVE.format(name=NAME) + ''.join(ports))
        processes = {'host': host.process, 'target': target.process, 'skuad': skuad.process}
        return {name: _transport(host, name, processes) for name in TRANSPORTS}


def show(found):
    """The last column compares Skua with the best of the others. Then, what of a processor the QEMUs of both guests and
    skuad take."""
    form = '  %-30s' + ' %16s' * len(TRANSPORTS) + ' %10s'
    print('\n' + form % ('NVMe over Fabrics', *TRANSPORTS, 'skua:best'))
    for name, *_, in_bytes in ROWS:
        figures = [found[transport][name]['figure'] for transport in TRANSPORTS]
        told = ['%.1f MB/s' % (figure / 1e6) if in_bytes else '%.0f op/s' % figure for figure in figures]
        print(form % (name, *told, '%.1f' % (figures[0] / max(figures[1:]))))
    print('\n' + form % ('us: host, target, skuad', *TRANSPORTS, ''))
    for name, *_ in ROWS:
        costs = [found[transport][name]['cost'].values() for transport in TRANSPORTS]
        print((form % (name, *(', '.join('%.0f' % cost for cost in each) for each in costs), '')).rstrip())
