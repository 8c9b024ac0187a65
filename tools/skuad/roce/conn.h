/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What RC and UC QPs have in common, as QPs with one peer: a message that comes in, and a rate.
 */
#ifndef SKUAD_ROCE_CONN_H
#define SKUAD_ROCE_CONN_H

#include "core/transport.h"
#include "roce/message.h"

struct roce_conn {
	struct skua_qp qp;
	struct dcqcn *dcqcn;		/* NULL: the QP has no rate, and sends as fast as it can */
	bool cnp_due;			/* the peer's packets were marked: a CNP is to be sent */
	uint64_t last_cnp_at;		/* when the peer was to be told the last time */
	struct message message;		/* the message that comes in */
};

static inline struct roce_conn *conn_of(const struct skua_qp *qp)
{
	return (struct roce_conn *)(uintptr_t)qp;
}

#endif /* SKUAD_ROCE_CONN_H */
