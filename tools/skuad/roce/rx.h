/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What arrives on the port of a device.
 */
#ifndef SKUAD_ROCE_RX_H
#define SKUAD_ROCE_RX_H

#include "core/device.h"

/* True: they are packets of RDMA, and were taken, or dropped and counted (ETH-9). */
bool roce_rx_train(struct skua_dev *dev, const struct train *t);
/* As roce_rx_train(), for one frame, which may be malformed. It has to lie in memory of skuad. */
bool roce_rx_frame(struct skua_dev *dev, const uint8_t *frame, uint32_t len);

#endif /* SKUAD_ROCE_RX_H */
