// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rate limits of QPs, and the options that peers agree on (ECE). The device checks their values.
 */
#include <skua/cmd.h>

#include "qp.h"
#include "rate.h"

/* Types that send. What is sent by a QP of XRC_TGT is of others' asking. */
static u32 skua_ib_rate_types(const struct skua_dev *dev)
{
	static const u8 types[] = {
		IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_RAW_PACKET, IB_QPT_XRC_INI,
	};
	unsigned int i;
	u32 bits = 0;

	if (!skua_has(dev, SKUA_F_RATE_LIMIT))
		return 0;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (skua_ib_has_type(dev, types[i]))
			bits |= BIT(types[i]);
	return bits;
}

void skua_ib_rate_caps(const struct skua_dev *dev, struct skua_query_device_resp *resp)
{
	resp->rate_qpts = skua_ib_rate_types(dev);
	if (!resp->rate_qpts)
		return;
	resp->min_rate = dev->limits.min_rate;
	resp->max_rate = dev->limits.max_rate;
}

int skua_ib_qp_options_to_hw(const struct ib_qp *ibqp, const struct ib_qp_attr *attr, int mask,
			     const struct skua_modify_qp_req *req, struct skua_qp_attr *hw)
{
	const struct skua_dev *dev = to_skua_dev(ibqp->device);
	u32 hw_mask = 0;

	if (mask & IB_QP_RATE_LIMIT) {
		if (!(skua_ib_rate_types(dev) & BIT(ibqp->qp_type)))
			return -EOPNOTSUPP;
		hw->rate_limit = cpu_to_le32(attr->rate_limit);
		hw->rate_burst = cpu_to_le32(req->rate_burst);
		hw->rate_packet = cpu_to_le16(req->rate_packet);
		hw_mask |= SKUA_QP_ATTR_RATE_LIMIT;
	} else if (req->rate_burst || req->rate_packet) {
		return -EINVAL;
	}
	if (req->reserved)
		return -EINVAL;
	if (req->ece_options) {
		if (!skua_has(dev, SKUA_F_ECE))
			return -EOPNOTSUPP;
		hw->ece_options = cpu_to_le32(req->ece_options);
		hw_mask |= SKUA_QP_ATTR_ECE;
	}
	return hw_mask;
}
