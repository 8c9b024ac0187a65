/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What QPs with one peer have alike, those of RC and UC: a message on its way in, and a rate.
 */
#ifndef SKUAD_ROCE_CONN_H
#define SKUAD_ROCE_CONN_H

#include "core/transport.h"
#include "roce/message.h"
#include "roce/send.h"

struct roce_conn {
	struct skua_qp qp;
	struct dcqcn *dcqcn;		/* NULL: it sends as fast as it can */
	bool cnp_due;			/* the peer's packets were marked: it is to be told */
	uint64_t cnp_at;		/* when it was to be told the last time */
	struct message message;		/* that comes in */
};

static inline struct roce_conn *conn_of(const struct skua_qp *qp)
{
	return (struct roce_conn *)(uintptr_t)qp;
}

/* All that the path of the QP needs is filled in; what is lost counts as sent; @mark as in link/port.h. (send.c) */
enum port_result roce_send(struct skua_qp *qp, struct train *t, struct port_mark *mark);

/* dcqcn.c */
#define DCQCN_BURST	4096u	/* bytes of a train of one that has a rate */
void dcqcn_reset(struct skua_qp *qp);
void dcqcn_marked(struct skua_qp *qp, uint32_t npkts);	/* packets that came marked */
bool dcqcn_notify(struct skua_qp *qp);	/* send what is due. False: no room on the wire */
void dcqcn_cnp(struct skua_qp *qp);	/* one has come */
/* Of one that has a rate: it has sent @t; does it have to wait until it may send more? */
void dcqcn_sent(struct skua_qp *qp, const struct train *t);
bool dcqcn_waits(struct skua_qp *qp);
bool dcqcn_paused(const struct skua_qp *qp);	/* a timer ends its wait */
uint64_t dcqcn_rate(const struct skua_qp *qp);	/* bits a second, when last reckoned; 0: it has none */

/* One in ERR tells its peer nothing any more. */
static inline bool dcqcn_is_due(const struct skua_qp *qp)
{
	return conn_of(qp)->cnp_due && qp_can_receive(qp);
}

/* Of packets with payload. */
static inline bool qp_must_wait(struct skua_qp *qp)
{
	return conn_of(qp)->dcqcn && dcqcn_waits(qp);
}

static inline uint32_t qp_burst(const struct skua_qp *qp)
{
	if (port_is_slow(qp->dev->port))
		return qp->pmtu;
	return conn_of(qp)->dcqcn ? DCQCN_BURST : SEG_MAX_BYTES;
}

#endif /* SKUAD_ROCE_CONN_H */
