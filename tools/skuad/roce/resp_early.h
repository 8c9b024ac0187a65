/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that come before the expected PSN, and what the peer is told of them.
 */
#ifndef SKUAD_ROCE_RESP_EARLY_H
#define SKUAD_ROCE_RESP_EARLY_H

#include "roce/rc.h"

/* Something before @t is missing. */
void resp_rx_early(struct skua_qp *qp, const struct train *t);
/* The peer is to be told what is missing: @now, or else now and then, as such frames may be lost. */
void resp_owe_missing(struct skua_qp *qp, bool now);
/* The peer is to be told that it retransmitted a packet without need. */
void resp_tell_duplicate(struct skua_qp *qp);
/* Tell it. False: there is no room on the wire. */
bool resp_send_missing(struct skua_qp *qp);

#endif /* SKUAD_ROCE_RESP_EARLY_H */
