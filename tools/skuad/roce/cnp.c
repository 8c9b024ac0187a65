// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CNPs: a receiver of marked packets tells their sender, now and then (manual: congestion control).
 */
#include "roce/cnp.h"
#include "roce/send.h"

#define CNP_NS		50000		/* between CNPs */

void cnp_marked(struct skua_qp *qp, uint32_t npkts)
{
	uint64_t now = engine_now(qp->dev->engine);

	QP_STAT_ADD(qp, rdma_rx_ecn_marked, npkts);
	if (now - conn_of(qp)->last_cnp_at < CNP_NS)
		return;
	conn_of(qp)->last_cnp_at = now;
	conn_of(qp)->cnp_due = true;
	qp_activate(qp);
}

bool cnp_send(struct skua_qp *qp)
{
	struct train t = {
		.op = TRAIN_CNP, .transport = TRANSPORT_CNP, .first = true, .last = true,
		.npkts = 1,
	};
	struct port_mark mark = { 0 };

	if (roce_send(qp, &t, &mark) == PORT_BUSY)
		return false;
	conn_of(qp)->cnp_due = false;
	QP_STAT_INC(qp, cnp_sent);
	return true;
}
