/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ETH queue pairs, and the frames that they get.
 */
#ifndef SKUAD_ETH_ETH_H
#define SKUAD_ETH_ETH_H

#include "core/device.h"

struct flow;
struct transport_ops;

extern const struct transport_ops eth_ops;

/* A frame that is not RDMA's, in memory of our own. */
void eth_rx_frame(struct skua_dev *dev, const struct seglist *frame);

/* For steer.c: does the port take frames as long as that? Then one of them to where @flow leads, but not to @sender. */
bool eth_takes(const struct skua_dev *dev, const struct seglist *frame);
void eth_deliver(struct skua_dev *dev, const struct flow *flow, const struct seglist *frame,
		 const struct skua_qp *sender);

#endif /* SKUAD_ETH_ETH_H */
