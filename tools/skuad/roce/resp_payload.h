/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SENDs and WRITEs at the responder.
 */
#ifndef SKUAD_ROCE_RESP_PAYLOAD_H
#define SKUAD_ROCE_RESP_PAYLOAD_H

#include "roce/rc.h"

/* Packets of a SEND or WRITE, from the expected PSN on. */
void resp_rx_payload(struct skua_qp *qp, const struct train *t);

#endif /* SKUAD_ROCE_RESP_PAYLOAD_H */
