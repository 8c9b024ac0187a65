/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the peer answers.
 */
#ifndef SKUAD_ROCE_REQ_RX_H
#define SKUAD_ROCE_REQ_RX_H

#include "roce/rc.h"

void req_rx(struct skua_qp *qp, const struct train *t);
void req_rx_missing(struct skua_qp *qp, const struct repeat_frame *f);

#endif /* SKUAD_ROCE_REQ_RX_H */
