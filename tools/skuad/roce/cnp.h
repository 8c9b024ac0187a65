/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CNPs of a receiver to its peer.
 */
#ifndef SKUAD_ROCE_CNP_H
#define SKUAD_ROCE_CNP_H

#include "roce/conn.h"

/* @npkts packets came marked. */
void cnp_marked(struct skua_qp *qp, uint32_t npkts);
/* Send the CNP that is due. False: there is no room on the wire. */
bool cnp_send(struct skua_qp *qp);

/* A QP in ERR tells its peer nothing any more. */
static inline bool cnp_is_due(const struct skua_qp *qp)
{
	return conn_of(qp)->cnp_due && qp_can_receive(qp);
}

#endif /* SKUAD_ROCE_CNP_H */
