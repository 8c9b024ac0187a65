/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What arrives on the port of a device.
 */
#ifndef SKUAD_ROCE_RX_H
#define SKUAD_ROCE_RX_H

#include "core/device.h"

void roce_rx_train(struct skua_dev *dev, const struct train *t);
/* A frame that is RDMA's is taken, good or bad (ETH-9); it lies in memory of our own. */
bool roce_rx_frame(struct skua_dev *dev, const uint8_t *frame, uint32_t len);

#endif /* SKUAD_ROCE_RX_H */
