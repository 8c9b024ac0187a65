// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Flows: the kernel reads and checks what they compare. */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"

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
