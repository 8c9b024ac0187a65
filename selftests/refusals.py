#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""For test_counters.sh: requests between skua_0 and skua_1 that the responder refuses. Each direction has another number of
RNR NAKs and of NAKs for an access that is not allowed, so that no two counters of a NIC agree by chance."""

import sys
import time

from pyverbs import enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SendWR, SGE

RIGHTS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
# rnr_retry for who asks, and WRITEs without a right.
TIMES = {'skua_0': (4, 2), 'skua_1': (6, 3)}


class Side:
    def __init__(self, name):
        self.context = Context(name=name)
        self.pd, self.cq = PD(self.context), CQ(self.context, 10)
        self.mr = MR(self.pd, 4096, RIGHTS)
        # The one of IPv4 begins with zeros.
        self.index = next(entry.gid_index for entry in self.context.query_gid_table(64) if not entry.gid_subnet_prefix)
        self.gid = self.context.query_gid(1, self.index)

    def queue(self):
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(4, 4, 1, 1, 0), sq_sig_all=1)
        return QP(self.pd, init)

    def connect(self, qp, peer, number, rnr_retry):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = RIGHTS
        route = GlobalRoute(dgid=peer.gid, sgid_index=self.index)
        route.hop_limit = 64
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.dest_qp_num, attr.path_mtu = number, e.IBV_MTU_1024
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, rnr_retry
        qp.to_rts(attr)


def ask(side, peer, opcode, rnr_retry, status):
    qps = side.queue(), peer.queue()
    side.connect(qps[0], peer, qps[1].qp_num, rnr_retry)
    peer.connect(qps[1], side, qps[0].qp_num, 7)
    wr = SendWR(opcode=opcode, num_sge=1, sg=[SGE(side.mr.buf, 8, side.mr.lkey)])
    wr.set_wr_rdma(peer.mr.rkey ^ 0x100, peer.mr.buf)
    qps[0].post_send(wr)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        count, found = side.cq.poll(1)
        if count:
            if found[0].status != status:
                sys.exit('status %d, not %d' % (found[0].status, status))
            break
    else:
        sys.exit('no completion')
    for qp in qps:
        qp.close()


def main():
    sides = {name: Side(name) for name in TIMES}
    for (name, (rnr_retry, writes)), peer in zip(TIMES.items(), reversed(sides.values())):
        ask(sides[name], peer, e.IBV_WR_SEND, rnr_retry, e.IBV_WC_RNR_RETRY_EXC_ERR)
        for _ in range(writes):
            ask(sides[name], peer, e.IBV_WR_RDMA_WRITE, 0, e.IBV_WC_REM_ACCESS_ERR)


main()
