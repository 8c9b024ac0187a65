#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""For test_counters.sh: objects of each kind that `rdma resource` knows. What it tells of them is what skuactl says, and
what this program asked for. An error says what is not."""

import concurrent.futures
import ctypes
import fcntl
import itertools
import json
import mmap
import os
import struct
import subprocess
import sys
import time

from pyverbs import enums
from pyverbs.cq import CQ
from pyverbs.device import AllocDmAttr, Context, DM
from pyverbs.mr import DMMR, DmaBufMR, MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr


UDMABUF_CREATE = 0x40187542     # linux/udmabuf.h


def dma_buf(length):
    """Memory of udmabuf."""
    memory = os.memfd_create('dma-buf', os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, length)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    with open('/dev/udmabuf', 'wb') as device:
        return fcntl.ioctl(device, UDMABUF_CREATE, bytearray(struct.pack('<IIQQ', memory, 1, 0, length)))


def ask(*command):
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def rows(kind, *options):
    """Of this process."""
    place = 'link' if kind == 'qp' else 'dev', 'skua_0'
    found = ask('rdma', '-j', *options, 'resource', 'show', kind, *place)
    return [row for row in found if row.get('pid') == os.getpid()]


def of_nic(kind, **wanted):
    """The object of the NIC that has these values."""
    found = ask('skuactl', '--json', kind, 'skua0')[kind]
    return one(kind, [row for row in found if all(row[key] == value for key, value in wanted.items())])


def equal(what, value, expected):
    if value != expected:
        sys.exit('%s: %r, not %r' % (what, value, expected))


def one(what, found):
    equal('number of ' + what, len(found), 1)
    return found[0]


def details(what, row, **expected):
    for name, value in expected.items():
        equal('%s of %s' % (name, what), row.get('drv_' + name), value)


def raw(kind):
    """What the device has of each object of the kind: a raw row does not tell whose it is."""
    place = 'link' if kind == 'qp' else 'dev', 'skua_0'
    return [bytes(int(str(byte), 0) for byte in row['data'])
            for row in ask('rdma', '-j', '-r', 'resource', 'show', kind, *place) if 'data' in row]


def check_queues():
    """Their numbers in the device are those of the verbs, or are told apart by their sizes."""
    cqs = [CQ(context, 100), CQ(context, 500)]
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=77, max_sge=3)))
    srq.modify(SrqAttr(srq_limit=5), enums.IBV_SRQ_LIMIT)
    init = QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=cqs[0], rcq=cqs[1], cap=QPCap(20, 30, 2, 3, 16))
    qp = QP(pd, init)

    row = one('QPs', rows('qp', '-dd'))
    equal('lqpn', row['lqpn'], qp.qp_num)
    nic = of_nic('qps', qpn=qp.qp_num)
    # What the program asked for: libskua gives it more where the ring has room.
    details('QP', row, send_cqn=nic['scqn'], recv_cqn=nic['rcqn'], max_send_wr=20, max_recv_wr=30,
            max_send_sge=2, max_recv_sge=3, max_inline=16)
    equal('bytes of QPs', {len(data) for data in raw('qp')}, {128})

    numbers = {row['drv_cqn'] for row in rows('cq', '-dd')}
    equal('CQs', numbers, {nic['scqn'], nic['rcqn']})
    for row in rows('cq', '-dd'):
        equal('CQEs', of_nic('cqs', cqn=row['drv_cqn'])['size'] > row['cqe'] - 1, True)

    row = one('SRQs', rows('srq', '-dd'))
    details('SRQ', row, max_sge=3)
    equal('entries of the SRQ', row['drv_max_wr'] >= 77, True)
    limit, log_size = struct.unpack_from('<IB', one('raw SRQs', raw('srq')))
    # There are fewer entries than that, so it was raised at once.
    equal('limit of the SRQ', limit, 0)
    equal('entries of the SRQ in the device', 1 << log_size >= 77, True)


def check_memory():
    local = enums.IBV_ACCESS_LOCAL_WRITE
    dm = DM(context, AllocDmAttr(length=8192))
    regions = {
        'pinned': (MR(pd, 20 * 4096, local), 20 * 4096, None),
        'on-demand': (MR(pd, 3 * 4096, local | enums.IBV_ACCESS_ON_DEMAND), 3 * 4096, 0),
        'dma-buf': (DmaBufMR(pd, 5 * 4096, local, dma_buf(5 * 4096)), 5 * 4096, 5),
        'device-memory': (DMMR(pd, 4096, local | enums.IBV_ACCESS_ZERO_BASED, dm, 0), 4096, 0),
    }
    found = {row['drv_kind']: row for row in rows('mr', '-dd')}
    equal('kinds of MRs', set(found), set(regions))
    for kind, (mr, length, pages) in regions.items():
        nic = of_nic('mrs', key=mr.lkey)
        equal('length of ' + kind, found[kind]['mrlen'], length)
        # The record of an MR on demand has none.
        if kind != 'on-demand':
            equal('length in the NIC of ' + kind, nic['length'], length)
        equal('type in the NIC of ' + kind, nic['type'], 'dm' if kind == 'device-memory' else 'regular')
        # Memory of the program may begin in the middle of a page.
        if pages is None:
            equal('pages of ' + kind, found[kind]['drv_pinned_pages'] in (length // 4096, length // 4096 + 1), True)
        else:
            details(kind, found[kind], pinned_pages=pages)
        details(kind, found[kind], max_fast_entries=0)
    for mr, _, _ in regions.values():
        mr.close()
    dm.close()
    memory = mmap.mmap(-1, 9 * 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    mr = MR(pd, 0, local, address)
    details('an empty region', one('MRs', rows('mr', '-dd')), kind='pinned', pinned_pages=0)
    mr.close()
    check_changing(MR(pd, 4096, local, address), address)


def check_changing(mr, address):
    """What is told of a region whose memory is replaced meanwhile."""
    end = time.monotonic() + 2

    def change():
        for pages in itertools.cycle((1, 9)):
            mr.rereg(enums.IBV_REREG_MR_CHANGE_TRANSLATION, pd, address, pages * 4096)
            if time.monotonic() > end:
                return

    with concurrent.futures.ThreadPoolExecutor() as pool:
        changing = pool.submit(change)
        while not changing.done():
            row = one('MRs', rows('mr', '-dd'))
            details('a region that changes', row, kind='pinned')
            equal('pages of it', row['drv_pinned_pages'] in (1, 9), True)
        changing.result()
    mr.close()
    equal('MRs afterwards', rows('mr'), [])


context = Context(name='skua_0')
one('contexts', rows('ctx'))
pd = PD(context)
ctxn = one('PDs', rows('pd'))['ctxn']
equal('the context of the PD', ctxn, one('contexts', rows('ctx'))['ctxn'])
check_queues()
check_memory()
