/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FLUSH at the responder.
 */
#ifndef SKUAD_ROCE_RESP_FLUSH_H
#define SKUAD_ROCE_RESP_FLUSH_H

#include "roce/rc.h"

/* A FLUSH with the expected PSN. */
void resp_rx_flush(struct skua_qp *qp, const struct train *t);
/* Do a step of @job, a FLUSH that is the first job, or answer it. False: it has to wait. */
bool resp_send_flush(struct skua_qp *qp, struct read_job *job, int32_t *budget);

#endif /* SKUAD_ROCE_RESP_FLUSH_H */
