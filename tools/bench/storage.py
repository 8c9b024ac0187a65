# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""NVMe over Fabrics between two guests, over each transport of pair.py. The target's disk is null_blk, which stores
nothing, so the figures are those of the transports. Over each of them the user's queue is polled: no interrupt tells of
the end of an operation."""

from pair import must, TRANSPORTS

NAME = 'nqn.2026-01.org.skua:bench'
SERVICES = {'rdma': 4420, 'tcp': 4421}
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
nvme connect -t {type} -a {address} -s {service} -n {name} --nr-poll-queues=1 >/dev/null
until [ -b /dev/nvme0n1 ]; do sleep 0.1; done
'''
ENGINE = '--ioengine=io_uring --hipri --fixedbufs --registerfiles'
DISCONNECT = '''nvme disconnect -n {name} >/dev/null
while [ -e /dev/nvme0n1 ]; do sleep 0.1; done
'''.format(name=NAME)


def measure(pair):
    """{transport: Pair.measure()}"""
    found = {}
    ports = [PORT.format(id=number, type=kind, address=address, service=SERVICES[kind], name=NAME)
             for number, (kind, address) in enumerate(TRANSPORTS.values())]
    must(pair.server, SERVE.format(name=NAME) + ''.join(ports))
    for transport, (kind, address) in TRANSPORTS.items():
        must(pair.user, CONNECT.format(type=kind, address=address, service=SERVICES[kind], name=NAME))
        found[transport] = pair.measure('/dev/nvme0n1', ENGINE)
        must(pair.user, DISCONNECT)
    return found
