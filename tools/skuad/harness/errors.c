// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/errors.h"

void restart(struct world *w, struct node *n, struct skua_cmd rtr, struct skua_cmd rts)
{
	reconnect(w, n, n);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr);
	must(w, n, rts);
}

void post_message(struct node *a, const struct node *b, const struct message *m)
{
	struct { struct skua_wqe_ctrl c; struct skua_sge s[3]; } send = {
		.c = { .opcode = m->opcode, .nblocks = 1, .num_sge = m->len > 0,
		       .cookie = htole32(a->sq_pi), .inv_key = htole32(m->inv_key) } };
	struct { struct skua_wqe_ctrl c; struct skua_wqe_atomic t; struct skua_sge s; } atomic;
	struct { struct skua_wqe_ctrl c; struct skua_wqe_masked_atomic t; struct skua_sge s[4]; } masked = { 0 };
	struct skua_wqe_rdma rdma = { htole64(m->raddr), htole32(b->key), 0 };
	struct skua_sge sge = { htole64(m->addr), htole32(m->len), htole32(a->key) };

	if (m->opcode >= SKUA_WQE_MASKED_CMP_SWAP) {
		masked.c = send.c;
		masked.c.nblocks = 2;
		masked.t.raddr = rdma.raddr;
		masked.t.rkey = rdma.rkey;
		masked.s[0] = sge;
		post_blocks(a, &masked, 2);
		return;
	}
	if (m->opcode >= SKUA_WQE_CMP_SWAP) {
		atomic.c = send.c;
		atomic.t = (struct skua_wqe_atomic){ .raddr = rdma.raddr, .rkey = rdma.rkey };
		atomic.s = sge;
		post_block(a, &atomic);
		return;
	}
	if (m->opcode >= SKUA_WQE_WRITE && m->opcode <= SKUA_WQE_READ) {
		memcpy(&send.s[0], &rdma, sizeof(rdma));
		send.s[1] = sge;
	} else {
		send.s[0] = sge;
	}
	post_block(a, &send);
}

struct train with_payload(struct train t, uint32_t len, bool first, bool last)
{
	static uint8_t bytes[8192];
	static struct seglist payload;

	payload.n = 1;
	payload.bytes = len;
	payload.seg[0] = (struct seg){ bytes, len };
	t.payload = &payload;
	t.msg_len = len;
	t.first = first;
	t.last = last;
	return t;
}
