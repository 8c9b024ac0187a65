// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Flows: the kernel reads and checks what they compare. */
#include <errno.h>
#include <stdlib.h>

#include <skua/cmd.h>

#include "skua.h"

static_assert(IBV_RX_HASH_SRC_IPV4 == SKUA_HASH_SRC_IPV4 && IBV_RX_HASH_DST_IPV6 == SKUA_HASH_DST_IPV6 &&
	      (int)IBV_RX_HASH_SRC_PORT_TCP == SKUA_HASH_SRC_PORT_TCP &&
	      (int)IBV_RX_HASH_DST_PORT_UDP == SKUA_HASH_DST_PORT_UDP,
	      "what the frames of a flow are spread by has verbs' numbers");

struct ibv_flow *skua_create_flow(struct ibv_qp *ibv_qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;
	int err;

	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	err = ibv_cmd_create_flow(ibv_qp, flow, attr, NULL, 0);
	if (err) {
		free(flow);
		errno = err;
		return NULL;
	}
	return flow;
}

int skua_destroy_flow(struct ibv_flow *flow)
{
	int err;

	err = ibv_cmd_destroy_flow(flow);
	if (!err)
		free(flow);
	return err;
}
