/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames that go where flows say (manual: raw packets).
 */
#ifndef SKUAD_ETH_STEER_H
#define SKUAD_ETH_STEER_H

#include "core/device.h"

/* A copy for each sniffer that matches. */
void steer_sniff(struct skua_dev *dev, const struct seglist *frame);
/* A frame that has come, and is not RDMA's, to the QP of the flow that decides. False: none does. */
bool steer_frame(struct skua_dev *dev, const struct seglist *frame);
/* The same for a frame that @qp is about to send: to another QP of the device, by a normal flow. */
void steer_back(struct skua_qp *qp, const struct seglist *frame);

#endif /* SKUAD_ETH_STEER_H */
