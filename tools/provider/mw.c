// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory windows. The kernel makes them; they are bound by WQEs.
 *
 * Whoever binds a window gives it its next key. For type 2 that is the program, for type 1 it is ibv_bind_mw().
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"

struct ibv_mw *skua_alloc_mw(struct ibv_pd *ibv_pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int err;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;

	err = ibv_cmd_alloc_mw(ibv_pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	return mw;
}

int skua_dealloc_mw(struct ibv_mw *mw)
{
	int err;

	err = ibv_cmd_dealloc_mw(mw);
	if (err)
		return err;

	free(mw);
	return 0;
}

int skua_bind_mw(struct ibv_qp *ibv_qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	struct ibv_send_wr *bad_wr, wr = {
		.opcode = IBV_WR_BIND_MW,
		.wr_id = mw_bind->wr_id,
		.send_flags = mw_bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = mw_bind->bind_info,
		},
	};
	int err;

	err = skua_post_send(ibv_qp, &wr, &bad_wr);
	if (err) {
		errno = err;
		return err;
	}
	/* The device takes the key from the WQE: it does not matter which of them it carries out. */
	mw->rkey = wr.bind_mw.rkey;
	return 0;
}
