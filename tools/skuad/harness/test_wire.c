// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What goes over the wire and what does not: answers, loopback, MTU, GIDs, fences, counters. */
#include "core/qp.h"
#include "nic/control.h"
#include "harness/errors.h"
#include "harness/harness.h"
#include "link/impair.h"

static void mute(struct world *w, struct node *n)
{
	must(w, n, port_cmd(SKUA_PORT_SET_FLAGS, 0));
}

static void unmute(struct world *w, struct node *n)
{
	must(w, n, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
}

/* A fenced WQE begins when the data of all READs before it are there. */
static void fences(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(b, 64, 9);
	for (uint32_t fenced = 0; fenced < 2; fenced++) {
		uint64_t before = STAT(w, a, rdma_tx_packets);

		memset(at(a, a->buf), 0, 64);
		mute(w, b);
		post(a, SKUA_WQE_READ, 0, a->buf, 64, b->buf, b->key, 0);
		post(a, SKUA_WQE_WRITE, fenced ? SKUA_WQE_FENCE : 0, a->buf, 64, b->buf + 4096, b->key, 0);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf + 8192, b->key, 0);
		settle(w);
		assert_int_equal(STAT(w, a, rdma_tx_packets) - before, fenced ? 1 : 3);
		unmute(w, b);
		pass(w, 4096ull << 14);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		if (fenced)
			assert_memory_equal(at(b, b->buf + 4096), at(b, b->buf), 64);
	}
}

/* LOCAL_INV waits for all before it, and what is behind it waits for it. */
static void local_invalidation_waits(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = create_mr_cmd(a);
	uint32_t fast, key = a->key;

	cmd.create_mr.type = SKUA_MR_FAST;
	a->key = fast = must(w, a, cmd);
	post(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 64, 0, 0, 0);	/* waits for a receive */
	a->key = key;
	post(a, SKUA_WQE_LOCAL_INV, SKUA_WQE_SIGNALED, 0, 0, 0, 0, fast);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	settle(w);
	assert_int_equal(STAT(w, b, rdma_rx_write), 0);
	post_recv(b, b->buf, 64);
	pass(w, 1000000);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_LOCAL_INV, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	/* The region is of no use any more, but can be destroyed. */
	a->key = fast;
	post(a, SKUA_WQE_SEND, 0, a->buf, 64, 0, 0, 0);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
	must(w, a, object_cmd(SKUA_CMD_DESTROY_MR, fast));
}

/* Acknowledgements: at once where asked for, one for all that came before. */
static void acknowledgements(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before = STAT(w, b, rdma_tx_packets);

	for (int i = 0; i < 20; i++)
		post(a, SKUA_WQE_WRITE, i == 19 ? SKUA_WQE_SIGNALED : 0, a->buf, 8, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_true(STAT(w, b, rdma_tx_packets) - before < 20);
	/* Credits in an ACK are not looked at. */
	mute(w, b);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf, b->key, 0);
	settle(w);
	{
		struct train ack = train_from(a, TRAIN_ACK, FIRST_PSN + 20);

		ack.syndrome = 0;
		arrive(w, a, b, ack);
	}
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

static void answer(struct world *w, struct node *n, struct node *peer, uint32_t psn, uint8_t syndrome)
{
	struct train t = train_from(n, TRAIN_ACK, psn);

	t.syndrome = syndrome;
	arrive(w, n, peer, t);
}

/* An ACK that comes while all of it waits to be sent again: nothing is any more. */
static void acknowledged_before_it_is_sent_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t before;

	mute(w, b);
	for (int i = 0; i < 2; i++)
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 3000, b->buf, b->key, 0);
	settle(w);
	before = STAT(w, a, retransmits);
	answer(w, a, b, FIRST_PSN, AETH_RNR | 31);
	answer(w, a, b, FIRST_PSN + 3, 0);
	assert_int_equal(STAT(w, a, retransmits) - before, 2);
	assert_int_equal(poll_cq(a)->status, SKUA_CQE_SUCCESS);
	assert_null(poll_cq(a));
	answer(w, a, b, FIRST_PSN + 5, 0);
	assert_int_equal(poll_cq(a)->status, SKUA_CQE_SUCCESS);
}

/* An ACK of what is behind a READ that waits to be sent again is none of the READ. */
static void a_read_is_not_acknowledged_before_it_is_sent_again(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	mute(w, b);
	fill(b, 8, 5);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + 64, 8, b->buf, b->key, 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 8, b->buf + 64, b->key, 0);
	settle(w);
	answer(w, a, b, FIRST_PSN, AETH_RNR | 1);
	answer(w, a, b, FIRST_PSN + 1, 0);
	pass(w, 20000);		/* sent again, and lost again */
	unmute(w, b);
	pass(w, 2 * (4096ull << 14));
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf + 64), at(b, b->buf), 8);
}

/* What all packets of a QP have, from its address vector; none changes with the GID's entry. */
static void the_path_of_a_qp(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *b = &w->n[1];
	const struct skua_qp *qp = numtab_get(&n->dev->qps, n->qpn);
	struct skua_cmd rtr = rtr_cmd(n->qpn, b, b->qpn);
	struct skua_cmd gid = CMD(SKUA_CMD_SET_GID, .set_gid = { .vlan = htole16(9), .mac = { 2, 9 } });
	uint16_t sport = qp->path.sport;
	bool spread = false;

	assert_int_equal(qp->path.hop_limit, 64);	/* 0 was given */
	assert_int_equal(qp->path.vlan, SKUA_VLAN_NONE);
	assert_true(sport >= 0xc000);
	gid.hdr.port = 1;
	memcpy(gid.set_gid.gid, n->gid, 16);
	must(w, n, gid);
	assert_int_equal(qp->path.vlan, SKUA_VLAN_NONE);
	assert_memory_equal(qp->path.smac, n->mac, 6);
	for (uint32_t dest = 2; !spread && dest < 10; dest++) {
		must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
		must(w, n, init_cmd(n->qpn));
		must(w, n, rtr_cmd(n->qpn, b, dest));
		spread = qp->path.sport != sport;
	}
	assert_true(spread);
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	rtr.modify_qp.attr.av.flow_label = htole32(0xfedcb);
	rtr.modify_qp.attr.av.hop_limit = 7;
	rtr.modify_qp.attr.av.traffic_class = 0x62;
	rtr.modify_qp.attr.av.sl = 5;
	must(w, n, rtr);
	assert_int_equal(qp->path.sport, 0xc000 | ((0xfedcb & 0x3fff) ^ 0xfedcb >> 14));
	assert_int_equal(qp->path.flow_label, 0xfedcb);
	assert_int_equal(qp->path.hop_limit, 7);
	assert_int_equal(qp->path.traffic_class, 0x62);
	assert_int_equal(qp->path.sl, 5);
	assert_int_equal(qp->path.vlan, 9);
	assert_memory_equal(qp->path.smac, gid.set_gid.mac, 6);
}

/* A QP connected to another of its own device. */
static void loop_back(struct world *w)
{
	struct node *n = &w->n[0];
	uint32_t first = n->qpn, second;
	struct queues old = new_queues(n);

	second = must(w, n, create_qp_cmd(n));
	for (int i = 0; i < 2; i++) {
		must(w, n, state_cmd(i ? first : second, SKUA_QPS_RESET));
		must(w, n, init_cmd(i ? first : second));
		must(w, n, rtr_cmd(i ? first : second, n, i ? second : first));
		must(w, n, rts_cmd(i ? first : second));
	}
	n->qpn = second;
	old = use_queues(n, old);
	n->qpn = first;
	fill(n, 300000, 4);
	post(n, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, n->buf, 300000, n->buf + (1 << 20), n->key, 0);
	post(n, SKUA_WQE_READ, SKUA_WQE_SIGNALED, n->buf + (2 << 20), 300000, n->buf, n->key, 0);
	expect(w, n, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	expect(w, n, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(n, n->buf + (1 << 20)), at(n, n->buf), 300000);
	assert_memory_equal(at(n, n->buf + (2 << 20)), at(n, n->buf), 300000);
	assert_true(STAT(w, n, rdma_rx_packets) > 0);
	/* With all its steps, refusals too. */
	post(n, SKUA_WQE_WRITE, 0, n->buf, 8, n->buf, n->key ^ 1, 0);
	expect(w, n, SKUA_CQE_WRITE, SKUA_CQE_REM_ACCESS_ERR);
	expect_event(w, n, SKUA_EVENT_QP_ACCESS_ERR, second);
}

static void loopback(void **state)
{
	loop_back(*state);
}

/* A rule looks at them on their way, so trains are cut into packets. */
static void loopback_of_packets(void **state)
{
	struct world *w = *state;
	struct impair_config config = { 0 };
	char err[80];

	assert_true(impair_parse(&config, "drop=0%,dir=out", err, sizeof(err)));
	assert_true(skua_dev_set_impair(w->n[0].dev, &config));
	loop_back(w);
}

/* A QP connected to itself. */
static void a_qp_that_is_its_own_peer(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	must(w, n, init_cmd(n->qpn));
	must(w, n, rtr_cmd(n->qpn, n, n->qpn));
	must(w, n, rts_cmd(n->qpn));
	fill(n, 5000, 4);
	post_recv(n, n->buf + 8192, 5000);
	post(n, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, n->buf, 5000, 0, 0, 0);
	expect(w, n, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
	expect(w, n, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	post(n, SKUA_WQE_READ, SKUA_WQE_SIGNALED, n->buf + 16384, 5000, n->buf, n->key, 0);
	expect(w, n, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(n, n->buf + 16384), at(n, n->buf), 5000);
}

/* Packets that are longer than the MTU allows are lost; the connection keeps its path MTU. */
static void the_mtu_of_the_port(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	/* IPv4 20, UDP 8, BTH 12, RETH 16, ICRC 4; the tag of a VLAN is not counted. */
	const uint32_t fits = 1024 + 20 + 8 + 12 + 16 + 4 - 4;

	for (uint32_t mtu = fits - 1; mtu <= fits; mtu++) {
		struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_MTU, 0);

		cmd.set_port.mtu = htole32(mtu);
		must(w, a, cmd);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 5000, b->buf, b->key, 0);
		settle(w);
		if (mtu < fits) {
			/* The first, with its RETH. */
			assert_int_equal(STAT(w, a, rdma_tx_packets), 4);
			cmd.set_port.mtu = htole32(9000);
			must(w, a, cmd);
			pass(w, 4096ull << 14);
		}
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_int_equal(((struct skua_qp_attr *)query(w, a, object_cmd(SKUA_CMD_QUERY_QP, a->qpn),
							       128))->path_mtu, 3);
	}
}

/* A peer may have another MTU. What comes is dropped as on a wire, whether packets come as bytes or as a train. */
static void packets_above_the_mtu(void **state)
{
	const uint32_t fits = 1024 + 20 + 8 + 12 + 16 + 4 - 4;
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train t = with_payload(train_from(b, TRAIN_WRITE, FIRST_PSN), 3072, true, true);
	struct skua_cmd cmd = port_cmd(SKUA_PORT_SET_MTU, 0);

	t.npkts = 3;
	for (uint32_t mtu = fits - 1; mtu <= fits; mtu++) {
		cmd.set_port.mtu = htole32(mtu);
		must(w, b, cmd);
		arrive(w, b, a, t);
		assert_int_equal(STAT(w, b, rdma_rx_bad_packet), 3);
		assert_int_equal(STAT(w, b, rdma_rx_write), mtu == fits);
		assert_int_equal(STAT(w, b, rdma_rx_packets), mtu == fits ? 6 : 3);
	}
}

/* A GID that is cleared: packets to it do not reach RDMA, until it is there again; what the QP took
 * from the entry stays. */
static void a_gid_that_is_cleared(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd gid = CMD(SKUA_CMD_SET_GID, .set_gid = { .vlan = htole16(SKUA_VLAN_NONE) });
	uint64_t frames = STAT(w, b, rx_no_buffer);

	gid.hdr.port = 1;
	must(w, b, gid);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	expect_none(w, a);
	assert_int_equal(STAT(w, b, rx_no_buffer) - frames, 1);
	/* In another entry, and there for another VLAN first. */
	memcpy(gid.set_gid.mac, b->mac, 6);
	memcpy(gid.set_gid.gid, b->gid, 16);
	gid.set_gid.index = htole16(7);
	gid.set_gid.vlan = htole16(5);
	must(w, b, gid);
	pass(w, 4096ull << 14);
	expect_none(w, a);
	gid.set_gid.vlan = htole16(SKUA_VLAN_NONE);
	must(w, b, gid);
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
}

/* WQEs: what is not looked at, and one whose length cannot be believed. */
static void padding_and_spare_blocks(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_sge s[15]; } wqe;

	memset(&wqe, 0xff, sizeof(wqe));
	wqe.c = (struct skua_wqe_ctrl){ .opcode = SKUA_WQE_SEND, .flags = SKUA_WQE_SIGNALED, .nblocks = 4,
					.num_sge = 2 };
	wqe.s[0] = (struct skua_sge){ htole64(a->buf), htole32(8), htole32(a->key) };
	wqe.s[1] = (struct skua_sge){ ~0ull, 0, ~0u };	/* of no length: not looked at either */
	post_recv(b, b->buf, 64);
	post_blocks(a, &wqe, 4);
	assert_int_equal(le32toh(await_cqe(w, a)->sq_ci), 4);
	assert_int_equal(le32toh(await_cqe(w, b)->byte_len), 8);
	/* It is taken to reach to the published index. */
	wqe.c.nblocks = 0;
	wqe.c.cookie = htole32(77);
	post_blocks(a, &wqe, 3);
	{
		struct skua_cqe *cqe = await_cqe(w, a);

		assert_int_equal(cqe->status, SKUA_CQE_LOC_QP_OP_ERR);
		assert_int_equal(le32toh(cqe->cookie), 77);
		assert_int_equal(le32toh(cqe->sq_ci), 7);
	}
	expect_none(w, a);
}

/* A fault in a later SGE: the peer never sees the message complete. */
static void a_fault_in_a_later_part(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_sge s[3]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .nblocks = 1, .num_sge = 2 },
		.s = { { htole64(a->buf), htole32(1 << 20), htole32(a->key) },
		       { htole64(a->buf), htole32(8), htole32(a->key ^ 1) } } };

	post_recv(b, b->buf, BUF_SIZE);
	post_block(a, &wqe);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_send), 0);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_RTS);
}

/* Memory that nobody gave for it stays as it is, whatever runs. */
static void nothing_else_is_written(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];
		uint8_t *spare = n->mem + n->used;

		memset(spare, 0x6b, (size_t)(n->buf - IOVA) - n->used);
		memset(n->extra, 0x6b, EXTRA_SIZE);
	}
	for (int i = 0; i < 2; i++) {
		struct node *a = &w->n[i], *b = &w->n[!i];
		uint8_t rq[64u << LOG_RQ], sq[SKUA_WQE_BLOCK << LOG_SQ];

		for (int j = 0; j < 50; j++) {
			post_recv(b, b->buf, 64);
			memcpy(rq, at(b, b->rq), sizeof(rq));
			post(a, SKUA_WQE_SEND, 0, a->buf, 64, 0, 0, 0);
			post(a, SKUA_WQE_WRITE, 0, a->buf, 5000, b->buf, b->key, 0);
			post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 5000, b->buf, b->key, 0);
			memcpy(sq, at(a, a->sq), sizeof(sq));
			expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
			expect(w, b, SKUA_CQE_RECV, SKUA_CQE_SUCCESS);
			assert_memory_equal(sq, at(a, a->sq), sizeof(sq));
			assert_memory_equal(rq, at(b, b->rq), sizeof(rq));
		}
	}
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->n[i];

		for (uint64_t j = n->used; j < n->buf - IOVA; j++)
			assert_int_equal(n->mem[j], 0x6b);
		for (uint64_t j = 0; j < EXTRA_SIZE; j++)
			assert_int_equal(n->extra[j], 0x6b);
		/* Records are the host's, but for the event word of an SQ. */
		assert_int_equal(host_load32((uint8_t *)at(n, n->rq_dbr) + 4), 0);
		assert_int_equal(host_load32((uint8_t *)at(n, n->sq_dbr) + 8), 0);
	}
}

struct remap {
	struct node *n;
	uint8_t *memory;
	bool writable;
};

static void do_remap(void *arg)
{
	struct remap *r = arg;

	assert_int_equal(skua_dev_mem_unmap(r->n->dev, EXTRA, EXTRA_SIZE), 0);
	assert_int_equal(skua_dev_mem_map(r->n->dev, EXTRA, EXTRA_SIZE, r->memory, r->writable), 0);
}

/* Other memory at the same address: the device finds it; also where it may only be read. */
static void memory_that_is_mapped_anew(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd cmd = create_mr_cmd(b);
	struct remap remap = { b, calloc(1, EXTRA_SIZE), true };

	cmd.create_mr.pages = list(EXTRA, 4096);
	b->key = must(w, b, cmd);
	fill(a, 4096, 1);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 4096, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(b->extra, at(a, a->buf), 4096);
	do_remap(&remap);
	fill(a, 4096, 2);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 4096, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(remap.memory, at(a, a->buf), 4096);
	assert_memory_not_equal(b->extra, at(a, a->buf), 4096);
	remap.writable = false;
	do_remap(&remap);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 4096, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	/* A region that may be written cannot be made there, nor a CQ. */
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_ADDRESS);
	cmd.create_mr.access = htole32(SKUA_ACCESS_REMOTE_READ);
	must(w, b, cmd);
	cmd = create_cq_cmd(b);
	cmd.create_cq.ring = list(EXTRA, 64u << LOG_CQ);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_ADDRESS);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 4096, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_REM_OP_ERR);
	unmap_extra(b);
	map_extra(b, true);
	free(remap.memory);
}

/* Its place in the device's own memory is kept; not so when the map has changed. */
static void a_record_that_is_mapped_anew(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct remap remap = { a, calloc(1, EXTRA_SIZE), true };
	struct skua_cmd cmd;

	new_queues(a);
	cmd = create_qp_cmd(a);
	cmd.create_qp.sq_dbr_addr = htole64(EXTRA);
	a->sq_dbr = EXTRA;
	a->qpn = must(w, a, cmd);
	reconnect(w, a, b);
	for (int i = 0; i < 2; i++) {
		post(a, SKUA_WQE_NOP, SKUA_WQE_SIGNALED, 0, 0, 0, 0, 0);
		settle(w);
		assert_non_null(poll_cq(a));
	}
	memcpy(remap.memory, a->extra, EXTRA_SIZE);
	do_remap(&remap);
	((struct skua_dbr *)(void *)remap.memory)->pi = htole32(3);
	((struct skua_dbr *)(void *)a->extra)->pi = htole32(2);
	memcpy(at(a, a->sq + 2 * SKUA_WQE_BLOCK), at(a, a->sq), SKUA_WQE_BLOCK);
	ring(a, SKUA_DB_SQ, a->qpn, 3);
	settle(w);
	assert_non_null(poll_cq(a));
	unmap_extra(a);
	map_extra(a, true);
	free(remap.memory);
}

/* Payload is read again when it is sent again: as it is then, until the WQE completes. */
static void payload_is_read_until_it_completes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	fill(a, 64, 1);
	mute(w, b);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf, b->key, 0);
	settle(w);
	fill(a, 64, 2);
	unmute(w, b);
	pass(w, 4096ull << 14);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf), at(b, b->buf), 64);
}

/* Counters are those of the wire. */
static void counters(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	/* Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4. */
	const uint64_t head = 58;

	assert_int_equal(command(w, a, &(struct skua_cmd)CMD(0xffff)), SKUA_CMD_BAD_OPCODE);
	assert_int_equal(STAT(w, a, bad_commands), 1);
	assert_int_equal(STAT(w, a, rdma_tx_packets), 0);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 3001, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, a, rdma_tx_packets), 3);
	assert_int_equal(STAT(w, a, rdma_tx_bytes), 3 * head + 16 + 3004);	/* a RETH, and the pad */
	assert_int_equal(STAT(w, b, rdma_rx_packets), 3);
	assert_int_equal(STAT(w, b, rdma_rx_bytes), 3 * head + 16 + 3004);
	assert_int_equal(STAT(w, b, rdma_tx_bytes), head + 4);			/* an ACK */
	assert_int_equal(STAT(w, a, rdma_tx_write), 1);
	assert_int_equal(STAT(w, b, rdma_rx_write), 1);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf, 3001, b->buf, b->key, 0);
	expect(w, a, SKUA_CQE_READ, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, a, rdma_tx_packets), 4);
	assert_int_equal(STAT(w, b, rdma_tx_packets), 4);
	assert_int_equal(STAT(w, b, rdma_tx_bytes), head + 4 + 3 * head + 8 + 3004);
	assert_int_equal(STAT(w, a, rdma_tx_read), 1);
	assert_int_equal(STAT(w, b, rdma_rx_read), 1);
	post_recv(b, b->buf, 64);
	post(a, SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, a->buf, 8, 0, 0, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	assert_int_equal(STAT(w, a, rdma_tx_send), 1);
	assert_int_equal(STAT(w, b, rdma_rx_send), 1);
	assert_int_equal(STAT(w, a, retransmits), 0);
	assert_int_equal(STAT(w, b, duplicates), 0);
	assert_true(STAT(w, a, commands) > 10);
	/* They are of the function, over objects that are gone; a reset clears them. */
	must(w, a, object_cmd(SKUA_CMD_DESTROY_QP, a->qpn));
	assert_int_equal(STAT(w, a, rdma_tx_send), 1);
	revive(w, a);
	assert_int_equal(STAT(w, a, rdma_tx_send), 0);
	assert_int_equal(STAT(w, a, rdma_tx_packets), 0);
}

/* Bring-up: what is fixed, and what is there without features. */
static void registers_after_enable(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	static const uint32_t regs[] = { SKUA_REG_ACCEPTED_LO, SKUA_REG_ACCEPTED_HI, SKUA_REG_CMD_RING_LO,
		SKUA_REG_CMD_RING_HI, SKUA_REG_CMD_CPL_LO, SKUA_REG_CMD_CPL_HI, SKUA_REG_CMD_DBR_LO,
		SKUA_REG_CMD_DBR_HI, SKUA_REG_CMD_LOG_SIZE };
	static const uint32_t read_only[] = { SKUA_REG_SIGNATURE, SKUA_REG_VERSION, SKUA_REG_STATUS,
		SKUA_REG_HEALTH, SKUA_REG_FEATURES_LO, SKUA_REG_FEATURES_HI, SKUA_REG_CMD_MAX_LOG };
	static const uint32_t reserved[] = { SKUA_REG_HEALTH + 4, SKUA_REG_CMD_MAX_LOG + 4, 0xffc };

	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		uint32_t before = reg_read(n, regs[i]);

		reg_write(n, regs[i], ~before);
		assert_int_equal(reg_read(n, regs[i]), before);
	}
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++) {
		uint32_t before = reg_read(n, read_only[i]);

		reg_write(n, read_only[i], ~before);
		assert_int_equal(reg_read(n, read_only[i]), before);
	}
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		reg_write(n, reserved[i], 0xabcd);
		assert_int_equal(reg_read(n, reserved[i]), 0);
	}
	/* Nor does clearing ENABLE end anything. */
	reg_write(n, SKUA_REG_CONTROL, 0);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
	must(w, n, (struct skua_cmd)CMD(SKUA_CMD_NOP));
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET | SKUA_CONTROL_ENABLE);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
	assert_int_equal(reg_read(n, SKUA_REG_CONTROL), 0);
	for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		assert_int_equal(reg_read(n, regs[i]), 0);
		reg_write(n, regs[i], 0xabcd0000 + (uint32_t)i);
		assert_int_equal(reg_read(n, regs[i]), 0xabcd0000 + (uint32_t)i);
	}
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++) {
		uint32_t before = reg_read(n, read_only[i]);

		reg_write(n, read_only[i], ~before);
		assert_int_equal(reg_read(n, read_only[i]), before);
	}
}

/* The port and the table of GIDs as a reset leaves them. */
static void the_port_after_reset(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = CMD(SKUA_CMD_QUERY_PORT), mac = port_cmd(SKUA_PORT_SET_MAC, 0);
	struct skua_cmd rtr = rtr_cmd(n->qpn, &w->n[1], w->n[1].qpn);
	struct skua_cmd gid = CMD(SKUA_CMD_SET_GID, .set_gid = {
		.mac = { 2, 9 }, .vlan = htole16(SKUA_VLAN_NONE), .index = htole16(3) });
	struct skua_port_attr *attr;

	cmd.hdr.port = 1;
	gid.hdr.port = 1;
	memcpy(gid.set_gid.gid, n->gid, 16);
	must(w, n, gid);
	port_allow_spoof(n->dev->port, true);
	memcpy(mac.set_port.mac, (uint8_t[6]){ 2, 7 }, 6);
	must(w, n, mac);
	memset(n->mem, 0, MEM_SIZE);
	n->used = 0;
	n->cmd_pi = 0;
	bring_up(w, n);
	attr = query(w, n, cmd, sizeof(*attr));
	assert_int_equal(attr->flags, 0);
	assert_int_equal(le32toh(attr->mtu), 1500);
	assert_int_equal(attr->rx_qpn, 0);
	assert_memory_equal(attr->mac, n->mac, 6);
	assert_memory_equal(attr->perm_mac, n->mac, 6);
	/* No GID is left: no QP can have a path. */
	revive(w, n);
	rtr.modify_qp.qpn = htole32(n->qpn);
	must(w, n, init_cmd(n->qpn));
	rtr.modify_qp.attr.av.sgid_index = 3;
	assert_int_equal(command(w, n, &rtr), SKUA_CMD_BAD_PARAM);
}

static void without_any_feature(void **state)
{
	struct world *w = world_create_with(false, 0);
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_qp_cmd(n);

	(void)state;
	/* PDs, CQs, EQs and a REGULAR region the harness has made already. */
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.create_qp.type = SKUA_QPT_ETH;
	cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = create_mr_cmd(n);
	cmd.create_mr.type = SKUA_MR_FAST;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = create_mr_cmd(n);
	cmd.create_mr.access = htole32(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = create_mr_cmd(n);
	cmd.create_mr.type = SKUA_MR_PHYS;
	cmd.create_mr.iova = 0;
	cmd.create_mr.length = 0;
	cmd.create_mr.pages = (struct skua_pagelist){ 0 };
	must(w, n, cmd);
	world_destroy(w);
}

/* Numbers of QPs and keys: nobody can tell the next one, nor those after a reset. */
static void numbers_that_cannot_be_guessed(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint32_t before[2] = { 0 }, near = 0, variants = 0, first[2], again;

	first[0] = n->qpn;
	first[1] = n->key;
	for (int i = 0; i < 200; i++) {
		uint32_t qpn = must(w, n, create_qp_cmd(n)), key = must(w, n, create_mr_cmd(n));

		assert_true(qpn > 1 && qpn < 1 << 24);
		near += qpn - before[0] < 65536 || before[0] - qpn < 65536;
		near += (key >> 8) - before[1] < 65536 || before[1] - (key >> 8) < 65536;
		variants |= key & 0xff;
		before[0] = qpn;
		before[1] = key >> 8;
	}
	assert_true(near < 30);		/* 3.2 are to be expected */
	assert_int_equal(variants, 0xff);
	revive(w, n);
	again = (n->qpn == first[0]) + (n->key == first[1]);
	assert_int_equal(again, 0);
}

/* IBTA's numbers, as Linux has them. */
static void numbers_of_the_specification(void **state)
{
	(void)state;
	assert_int_equal(SKUA_QPS_INIT, 1);
	assert_int_equal(SKUA_QPS_RTR, 2);
	assert_int_equal(SKUA_QPS_RTS, 3);
	assert_int_equal(SKUA_QPS_SQD, 4);
	assert_int_equal(SKUA_QPS_ERR, 6);
	assert_int_equal(SKUA_CQE_WR_FLUSH_ERR, 5);
	assert_int_equal(SKUA_CQE_REM_ACCESS_ERR, 10);
	assert_int_equal(SKUA_CQE_RNR_RETRY_EXC_ERR, 13);
	assert_int_equal(SKUA_ACCESS_LOCAL_WRITE, 1);
	assert_int_equal(SKUA_ACCESS_REMOTE_ATOMIC, 8);
	/* Structures that may grow are whole blocks. */
	assert_int_equal(sizeof(struct skua_cmd) % 64, 0);
	assert_int_equal(sizeof(struct skua_cmd_cpl) % 64, 0);
	assert_int_equal(sizeof(struct skua_pagelist) % 64, 0);
	assert_int_equal(sizeof(struct skua_dbr) % 64, 0);
	assert_int_equal(sizeof(struct skua_cqe), 64);
}

int main(void)
{
#define OWN(f, rules) { rules ": " #f, f, NULL, NULL, NULL }
	const struct CMUnitTest tests[] = {
		STEPPED(fences, "ORD-3"),
		STEPPED(local_invalidation_waits, "ORD-4 MR-5"),
		STEPPED(acknowledgements, "ROC-9"),
		STEPPED(acknowledged_before_it_is_sent_again, "ROC-9 ROC-12"),
		STEPPED(a_read_is_not_acknowledged_before_it_is_sent_again, "ROC-9 ROC-13"),
		STEPPED(the_path_of_a_qp, "ROC-3 ROC-4 GID-4"),
		STEPPED(loopback, "ROC-14"),
		STEPPED(loopback_of_packets, "ROC-14"),
		STEPPED(a_qp_that_is_its_own_peer, "ROC-14"),
		STEPPED(the_mtu_of_the_port, "PRT-4"),
		STEPPED(packets_above_the_mtu, "PRT-4"),
		STEPPED(a_gid_that_is_cleared, "GID-4 ERR-3"),
		STEPPED(padding_and_spare_blocks, "WQE-2 WQE-4 WQE-8"),
		STEPPED(a_fault_in_a_later_part, "WQE-7"),
		STEPPED(nothing_else_is_written, "MEM-6 DBR-2 GEN-7"),
		STEPPED(memory_that_is_mapped_anew, "MEM-4 MEM-16 PL-8"),
		STEPPED(a_record_that_is_mapped_anew, "MEM-16"),
		STEPPED(payload_is_read_until_it_completes, "MEM-9"),
		STEPPED(counters, "STA-1 STA-3"),
		STEPPED(registers_after_enable, "REG-5 REG-6 FEA-1 FEA-3 REG-2"),
		STEPPED(the_port_after_reset, "PRT-3 GID-3 RST-1"),
		OWN(without_any_feature, "FEA-2 FEA-4"),
		STEPPED(numbers_that_cannot_be_guessed, "SEC-4 OBJ-1 OBJ-2 OBJ-3"),
		OWN(numbers_of_the_specification, "GEN-8 GRO-4"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
