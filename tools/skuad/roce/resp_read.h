/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * READs at the responder.
 */
#ifndef SKUAD_ROCE_RESP_READ_H
#define SKUAD_ROCE_RESP_READ_H

#include "roce/rc.h"

/* A READ request with the expected PSN. */
void resp_rx_read(struct skua_qp *qp, const struct train *t);
/* Send the next train of responses. False: there is no room on the wire, or the QP has to wait for its rate. */
bool resp_send_read(struct skua_qp *qp, struct read_job *job, int32_t *budget);
/* May the peer read these bytes, and, if @present, are pages on demand there? enum skua_vendor_err. */
int resp_check_read(struct skua_qp *qp, uint32_t rkey, uint64_t raddr, uint32_t len, bool present);

#endif /* SKUAD_ROCE_RESP_READ_H */
