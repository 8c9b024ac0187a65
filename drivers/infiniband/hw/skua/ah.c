// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address vectors, and address handles, which hold one each. The device knows no AHs: whoever
 * posts a datagram puts the vector into its WQE. A program does, too, and is told the MAC that the
 * kernel found.
 *
 * Only what the device takes becomes an AH: a datagram that it refuses would stop its QP.
 */
#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include <rdma/skua-abi.h>

#include "ah.h"
#include "skua_ib.h"

#define SKUA_IB_MAX_SL		7
#define SKUA_IB_FLOW_LABEL	0xfffff

static bool skua_ib_gid_is_ipv4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

int skua_ib_set_av(struct skua_av *av, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(ah) & IB_AH_GRH))
		return -EINVAL;
	if (rdma_is_zero_gid((union ib_gid *)&grh->dgid) || is_zero_ether_addr(ah->roce.dmac) ||
	    skua_ib_gid_is_ipv4(&grh->dgid) != skua_ib_gid_is_ipv4(&grh->sgid_attr->gid) ||
	    rdma_ah_get_sl(ah) > SKUA_IB_MAX_SL)
		return -EINVAL;

	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	ether_addr_copy(av->dmac, ah->roce.dmac);
	av->sgid_index = grh->sgid_index;
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	av->sl = rdma_ah_get_sl(ah);
	/* UCX sets all 32 bits, and other drivers take those that there are. */
	av->flow_label = cpu_to_le32(grh->flow_label & SKUA_IB_FLOW_LABEL);
	return 0;
}

void skua_ib_get_av(struct rdma_ah_attr *ah, const struct skua_av *av)
{
	union ib_gid dgid;

	memcpy(dgid.raw, av->dgid, sizeof(dgid.raw));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_sl(ah, av->sl);
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_ah_flags(ah, IB_AH_GRH);
	rdma_ah_set_grh(ah, &dgid, le32_to_cpu(av->flow_label), av->sgid_index, av->hop_limit,
			av->traffic_class);
	ether_addr_copy(ah->roce.dmac, av->dmac);
}

int skua_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	struct skua_ib_ah *ah = to_skua_ib_ah(ibah);
	struct skua_create_ah_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;
	err = skua_ib_set_av(&ah->av, attr->ah_attr);
	if (err || !udata)
		return err;

	ether_addr_copy(resp.dmac, ah->av.dmac);
	return ib_respond_udata(udata, resp);
}

int skua_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	skua_ib_get_av(attr, &to_skua_ib_ah(ibah)->av);
	return 0;
}

/* It is memory of the core's, and nothing else. */
int skua_ib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
