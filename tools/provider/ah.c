// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Address handles. The kernel checks the address and finds the next hop's MAC, which it tells; the
 * vector that WQEs need is kept here. The device knows no AHs.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "skua-abi.h"

#define SKUA_FLOW_LABEL	0xfffff

struct ibv_ah *skua_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr)
{
	struct skua_cmd_create_ah_resp resp = {};
	struct skua_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	err = ibv_cmd_create_ah(ibv_pd, &ah->ibv_ah, attr, &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}

	memcpy(ah->av.dgid, attr->grh.dgid.raw, sizeof(ah->av.dgid));
	memcpy(ah->av.dmac, resp.dmac, sizeof(ah->av.dmac));
	ah->av.sgid_index = attr->grh.sgid_index;
	ah->av.hop_limit = attr->grh.hop_limit;
	ah->av.traffic_class = attr->grh.traffic_class;
	ah->av.sl = attr->sl;
	ah->av.flow_label = htole32(attr->grh.flow_label & SKUA_FLOW_LABEL);
	return &ah->ibv_ah;
}

int skua_destroy_ah(struct ibv_ah *ibv_ah)
{
	int err;

	err = ibv_cmd_destroy_ah(ibv_ah);
	if (err)
		return err;

	free(to_skua_ah(ibv_ah));
	return 0;
}
