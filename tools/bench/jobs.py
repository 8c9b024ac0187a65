# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Open MPI between two guests, a rank in each, over each transport of pair.py. The programs are those of
selftests/ulp/mpi, which compare their data in the time that is told."""

import re
import statistics

from pair import must

ROUNDS = 3
TCP = '--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include '
UCX = '--mca pml ucx -x UCX_TLS=rc,self -x UCX_NET_DEVICES=%s:1'
# UCX before 1.19 takes the service level of a datagram for the type of its GID, which rdma_rxe does not tell by it.
WAYS = {'skua': UCX % 'skua_0', 'rxe': UCX % 'rxe0' + ' -x UCX_UD_VERBS_ETH_DGID_CHECK=n', 'tcp virtio': TCP + 'eth0',
        'tcp skua': TCP + 'skua0'}
RUN = ('OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 200 mpirun.openmpi --host left:1,right:1 -np 2 '
       '--bind-to none --mca mpi_yield_when_idle 1 {way} /mnt/share/ulp/mpi/openmpi/{program} </dev/null 2>&1')
# What, the program that tells it, whether more is better.
ROWS = [('latency, 8 B', 'messages', False), ('bandwidth, 1048576 B', 'messages', True),
        ('allreduce, 8 B', 'collectives', False), ('allreduce, 40000 B', 'collectives', False)]
TOLD = re.compile(r'^(\w+, \d+ B) +([\d.]+) (us|MB/s)', re.M)


def measure(pair):
    """{transport: {row: (median, unit)}}"""
    found = {}
    for transport, way in WAYS.items():
        values, units = {}, {}
        for program in sorted({program for _, program, _ in ROWS}) * ROUNDS:
            told = must(pair.user, RUN.format(way=way, program=program), 240)
            for name, value, unit in TOLD.findall(told):
                values.setdefault(name, []).append(float(value))
                units[name] = unit
        found[transport] = {name: (statistics.median(values[name]), units[name]) for name, *_ in ROWS}
    return found
