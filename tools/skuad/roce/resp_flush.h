/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FLUSH at the responder.
 */
#ifndef SKUAD_ROCE_RESP_FLUSH_H
#define SKUAD_ROCE_RESP_FLUSH_H

#include "roce/rc.h"

/* A FLUSH with the expected PSN. */
void resp_rx_flush(struct skua_qp *qp, const struct train *t);

#endif /* SKUAD_ROCE_RESP_FLUSH_H */
