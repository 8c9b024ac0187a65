/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rate limits of QPs, and the options that peers agree on (ECE).
 */
#ifndef SKUA_IB_RATE_H
#define SKUA_IB_RATE_H

#include <rdma/skua-abi.h>

#include "skua_ib.h"

/* What programs may set; all 0 if the device has no limits. */
void skua_ib_rate_caps(const struct skua_dev *dev, struct skua_query_device_resp *resp);
/*
 * What modify QP says of the rate (@attr, @mask) and, in the driver's part, of rate and ECE.
 * Returns the device's mask (SKUA_QP_ATTR_*), or an errno.
 */
int skua_ib_qp_options_to_hw(const struct ib_qp *ibqp, const struct ib_qp_attr *attr, int mask,
			     const struct skua_modify_qp_req *req, struct skua_qp_attr *hw);

#endif /* SKUA_IB_RATE_H */
