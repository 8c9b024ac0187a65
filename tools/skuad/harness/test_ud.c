// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* UD and GSI: what is sent, what is received, and all that is dropped. */
#include <arpa/inet.h>

#include "core/qp.h"
#include "harness/datagram.h"
#include "link/impair.h"
#include "nic/control.h"
#include "packet/icrc.h"
#include "packet/packet.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define HEADER		SKUA_UD_HEADER

static const uint8_t gid6[2][16] = {
	{ 0x20, 1, 0xd, 0xb8, [15] = 1 }, { 0x20, 1, 0xd, 0xb8, [15] = 2 },
};

/* Both nodes use UD QPs in RTS. */
static int setup_ud(void **state)
{
	struct world *w = world_create(false);

	for (int i = 0; i < 2; i++)
		ud_queues(w, &w->n[i], SKUA_QPT_UD, SKUA_QPS_RTS);
	*state = w;
	return 0;
}

static int setup_ud_threaded(void **state)
{
	struct world *w = world_create(true);

	for (int i = 0; i < 2; i++)
		ud_queues(w, &w->n[i], SKUA_QPT_UD, SKUA_QPS_RTS);
	*state = w;
	return 0;
}

/* Trains are cut into packets, and those taken apart again, where a rule looks at them. */
static void use_packets(struct world *w)
{
	struct impair_config config = { 0 };
	char err[80];

	assert_true(impair_parse(&config, "drop=0%,dir=out", err, sizeof(err)));
	for (int i = 0; i < 2; i++)
		assert_true(skua_dev_set_impair(w->n[i].dev, &config));
}

static uint16_t sum16(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The header of a datagram of @len bytes of UDP, at the start of the receive. */
static void check_header4(const uint8_t *p, struct node *from, struct node *to, uint32_t udp_len)
{
	static const uint8_t zero[20];

	assert_memory_equal(p, zero, 20);
	p += 20;
	assert_int_equal(p[0], 0x45);
	assert_int_equal(p[1], 0x62);			/* traffic class */
	assert_int_equal(p[2] << 8 | p[3], 20 + udp_len);
	assert_int_equal(p[8], 9);			/* hop limit */
	assert_int_equal(p[9], 17);
	assert_int_equal(sum16(p, 20), 0xffff);
	assert_memory_equal(p + 12, from->gid + 12, 4);
	assert_memory_equal(p + 16, to->gid + 12, 4);
}

static void check_header6(const uint8_t *p, uint32_t udp_len)
{
	assert_int_equal(p[0] << 8 | p[1], 0x6620 | 0xa);	/* version, class, label's upper bits */
	assert_int_equal(p[2] << 8 | p[3], 0xbcde);
	assert_int_equal(p[4] << 8 | p[5], udp_len);
	assert_int_equal(p[6], 17);
	assert_int_equal(p[7], 9);
	assert_memory_equal(p + 8, gid6[0], 16);
	assert_memory_equal(p + 24, gid6[1], 16);
}

#define UDP_BYTES(len, imm)	(8 + 12 + 8 + ((imm) ? 4 : 0) + (((len) + 3) & ~3u) + 4)

static void send_and_check(struct world *w, bool v6, uint32_t len, bool imm)
{
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_wqe_ud to = ud_to(b);
	struct skua_cqe *cqe;
	uint8_t *p = at(b, b->buf + 4096);

	to.av.traffic_class = 0x62;
	to.av.hop_limit = 9;
	to.av.flow_label = htole32(0xabcde);
	to.dest_qpn |= htole32(imm ? 0xab000000 : 0);		/* ignored */
	if (v6) {
		memcpy(to.av.dgid, gid6[1], 16);
		to.av.sgid_index = 3;
		to.av.sl = 5;
	}
	fill(a, 4096, len);
	memset(p, 0xcc, 5000);
	post_recv(b, b->buf + 4096, 5000);
	post_ud(a, imm ? SKUA_WQE_SEND_IMM : SKUA_WQE_SEND, SKUA_WQE_SIGNALED | SKUA_WQE_SOLICITED,
		a->buf, len, to, imm ? htobe32(0xd1d2d3d4) : 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	cqe = expect_datagram(w, b, HEADER + len);
	assert_int_equal(le32toh(cqe->qpn), b->qpn);
	assert_int_equal(le32toh(cqe->src_qpn), a->qpn);
	assert_memory_equal(cqe->smac, a->mac, 6);
	assert_int_equal(le16toh(cqe->vlan), v6 ? 5 << 13 | 77 : SKUA_VLAN_NONE);
	assert_int_equal(cqe->ip_version, v6 ? 6 : 4);
	assert_int_equal(cqe->flags & ~SKUA_CQE_PHASE, SKUA_CQE_SOLICITED | (imm ? SKUA_CQE_WITH_IMM : 0));
	if (imm)
		assert_int_equal(be32toh(cqe->imm_data), 0xd1d2d3d4);
	if (v6)
		check_header6(p, UDP_BYTES(len, imm));
	else
		check_header4(p, a, b, UDP_BYTES(len, imm));
	assert_memory_equal(p + HEADER, at(a, a->buf), len);
	assert_int_equal(p[HEADER + len], 0xcc);
}

/* What arrives is the same whether there were packets or not. */
static void datagrams(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 2, 3, 4, 255, 1024, 4096 };
	struct world *w = *state;
	struct skua_cmd mtu = port_cmd(SKUA_PORT_SET_MTU, 0);

	mtu.set_port.mtu = htole32(9000);
	for (int i = 0; i < 2; i++) {
		must(w, &w->n[i], mtu);
		set_gid(w, &w->n[i], 3, gid6[i], w->n[i].mac, 77);
	}
	for (int packets = 0; packets < 2; packets++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			for (int kind = 0; kind < 4; kind++)
				send_and_check(w, kind & 1, sizes[i], kind & 2);
		use_packets(w);
	}
	assert_int_equal(STAT(w, &w->n[0], rdma_tx_send), 64);
	assert_int_equal(STAT(w, &w->n[1], rdma_rx_send), 64);
	assert_int_equal(STAT(w, &w->n[1], rdma_rx_packets), 64);
}

/* Each value that may not be; the QP goes to SQE, and sends again from there. */
static void bad_wqes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_wqe_ud u; struct skua_sge s[4]; } good = {
		.c = { .opcode = SKUA_WQE_SEND, .nblocks = 2, .num_sge = 1 }, .u = ud_to(b),
		.s = { { htole64(a->buf), htole32(64), htole32(a->key) } } }, wqe;
	uint64_t sent = STAT(w, a, rdma_tx_packets);

#define BAD(status, vendor, ...) do {					\
	wqe = good;							\
	__VA_ARGS__;							\
	post_blocks(a, &wqe, wqe.c.nblocks == 1 ? 1 : 2);		\
	expect_vendor(w, a, wqe.c.opcode == SKUA_WQE_WRITE ? SKUA_CQE_WRITE : \
		      wqe.c.opcode == SKUA_WQE_READ ? SKUA_CQE_READ :	\
		      wqe.c.opcode == SKUA_WQE_LOCAL_INV ? SKUA_CQE_LOCAL_INV : \
		      wqe.c.opcode == SKUA_WQE_MASKED_FETCH_ADD ? SKUA_CQE_MASKED_FETCH_ADD : \
		      wqe.c.opcode == 0x77 ? SKUA_CQE_NOP : SKUA_CQE_SEND, \
		      SKUA_CQE_##status, SKUA_VENDOR_ERR_##vendor);	\
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_SQE);		\
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));			\
} while (0)
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.u.rsvd = htole64(1));
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.u.av.rsvd = htole16(1));
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.u.av.sl = 8);
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.u.av.flow_label = htole32(1 << 20));
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, memset(wqe.u.av.dmac, 0, 6));
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, memset(wqe.u.av.dgid, 0, 16));
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.u.av.dgid[10] = 0);		/* IPv6, and we are not */
	BAD(LOC_QP_OP_ERR, NO_PATH, wqe.u.av.sgid_index = 1);
	BAD(LOC_QP_OP_ERR, NO_PATH, wqe.u.av.sgid_index = 255);
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.c.nblocks = 1);		/* no room for the SGE */
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.c.flags = 0x80);
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.c.flags = SKUA_WQE_L4_CSUM);
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.c.imm_data = 1);
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.c.length = htole32(1));
	BAD(LOC_QP_OP_ERR, WQE_FORMAT, wqe.c.nblocks = 0);
	BAD(LOC_QP_OP_ERR, WQE_OPCODE, wqe.c.opcode = 0x77);
	BAD(LOC_QP_OP_ERR, WQE_OPCODE, wqe.c.opcode = SKUA_WQE_SEND_INV);
	BAD(LOC_QP_OP_ERR, WQE_OPCODE, wqe.c.opcode = SKUA_WQE_WRITE);
	BAD(LOC_QP_OP_ERR, WQE_OPCODE, wqe.c.opcode = SKUA_WQE_READ);
	BAD(LOC_QP_OP_ERR, WQE_OPCODE, wqe.c.opcode = SKUA_WQE_LOCAL_INV);
	BAD(LOC_QP_OP_ERR, WQE_OPCODE, wqe.c.opcode = SKUA_WQE_MASKED_FETCH_ADD);
	BAD(LOC_PROT_ERR, KEY_STALE, wqe.s[0].lkey = htole32(a->key ^ 1));
	BAD(LOC_PROT_ERR, BOUNDS, wqe.s[0].addr = htole64(a->buf + BUF_SIZE));
	BAD(LOC_LEN_ERR, MSG_TOO_LONG, wqe.s[0].length = htole32(1025));
	BAD(LOC_LEN_ERR, MSG_TOO_LONG, wqe.s[0].length = htole32(0xffffffff));
#undef BAD
	assert_int_equal(STAT(w, a, rdma_tx_packets), sent);
	expect_no_event(w, a);
	post_recv(b, b->buf, 4096);
	post_blocks(a, &good, 2);
	expect_datagram(w, b, HEADER + 64);
}

/* In front of the bad one all succeeds, behind it all is flushed, until RTS is there again. */
static void a_queue_in_sqe(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_wqe_ud to = ud_to(b), bad = to;

	bad.av.sl = 8;
	for (int i = 0; i < 9; i++)
		post_recv(b, b->buf, 4096);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, to, 0);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, bad, 0);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	post(a, SKUA_WQE_NOP, 0, 0, 0, 0, 0, 0);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, bad, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	expect(w, a, SKUA_CQE_NOP, SKUA_CQE_WR_FLUSH_ERR);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_SQE);
	pass(w, 1000000);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);		/* rung for, too */
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, a);
	expect_no_event(w, a);
	/* Receives go on. */
	post_recv(a, a->buf, 4096);
	post_ud(b, SKUA_WQE_SEND, 0, b->buf, 8, ud_to(a), 0);
	expect_datagram(w, a, HEADER + 8);
	must(w, a, modify_cmd(a->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_QKEY,
			      (struct skua_qp_attr){ .state = SKUA_QPS_RTS, .qkey = htole32(5) }));
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, to, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_none(w, a);
	for (int i = 0; i < 3; i++)
		expect_datagram(w, b, HEADER + 8);
	expect_none(w, b);
	/* What is posted just before RTS is flushed yet. */
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, bad, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR);
	host_store32(at(a, a->sq_dbr), 0);		/* unseen by a doorbell */
	host_store32(at(a, a->sq_dbr), a->sq_pi);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, b);
	/* A queue that cannot go on leads to ERR from there as well. */
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, bad, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR);
	host_store32(at(a, a->sq_dbr), a->sq_pi + (2 << LOG_SQ));
	{
		struct skua_cmd rts = state_cmd(a->qpn, SKUA_QPS_RTS);

		assert_int_equal(command(w, a, &rts), SKUA_CMD_BAD_STATE);
	}
	expect_event(w, a, SKUA_EVENT_QP_FATAL, a->qpn);
	assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
}

/* The port's MTU is the limit, whatever it is when the WQE is carried out. */
static void the_longest_datagram(void **state)
{
	static const struct { uint32_t mtu, longest; } rows[] = {
		{ 300, 256 }, { 352, 256 }, { 607, 256 }, { 608, 512 }, { 1119, 512 }, { 1120, 1024 },
		{ 1500, 1024 }, { 2143, 1024 }, { 2144, 2048 }, { 4191, 2048 }, { 4192, 4096 },
		{ 9000, 4096 },
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct skua_cmd mtu = port_cmd(SKUA_PORT_SET_MTU, 0);
		uint64_t sent;

		mtu.set_port.mtu = htole32(rows[i].mtu);
		must(w, a, mtu);
		must(w, b, mtu);
		post_recv(b, b->buf, 5000);
		post_ud(a, SKUA_WQE_SEND_IMM, SKUA_WQE_SIGNALED, a->buf, rows[i].longest, ud_to(b), 0);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		/* 256 bytes do not go through a smaller MTU, but are no fault. */
		if (rows[i].mtu >= 352)
			expect_datagram(w, b, HEADER + rows[i].longest);
		else
			expect_none(w, b);
		sent = STAT(w, a, rdma_tx_packets);
		post_ud(a, SKUA_WQE_SEND, 0, a->buf, rows[i].longest + 1, ud_to(b), 0);
		expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_ERR_MSG_TOO_LONG);
		assert_int_equal(STAT(w, a, rdma_tx_packets), sent);
		must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	}
}

static void a_port_that_is_down(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_recv(b, b->buf, 4096);
	for (int how = 0; how < 3; how++) {
		if (how == 1)
			must(w, a, port_cmd(SKUA_PORT_SET_FLAGS, 0));
		else
			skua_dev_set_link(w->n[how / 2].dev, false);
		post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, ud_to(b), 0);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		if (how == 1)
			must(w, a, port_cmd(SKUA_PORT_SET_FLAGS, SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE));
		else
			skua_dev_set_link(w->n[how / 2].dev, true);
		expect_none(w, b);
	}
	assert_int_equal(STAT(w, a, rdma_tx_send), 0);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, ud_to(b), 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_datagram(w, b, HEADER + 8);
}

/* Source GID, MAC and VLAN are those of the entry now. */
static void the_entry_of_the_gid(void **state)
{
	static const uint8_t mac[6] = { 2, 9, 9, 9, 9, 9 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint8_t other[16] = { [10] = 255, [11] = 255, 198, 51, 100, 7 };
	struct skua_wqe_ud to = ud_to(b);
	struct skua_cqe *cqe;

	port_allow_spoof(a->dev->port, true);
	to.av.sl = 3;
	set_gid(w, b, 1, b->gid, b->mac, 12);
	for (int i = 0; i < 4; i++)
		post_recv(b, b->buf, 4096);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	cqe = expect_datagram(w, b, HEADER + 8);
	assert_int_equal(le16toh(cqe->vlan), SKUA_VLAN_NONE);
	set_gid(w, a, 0, other, mac, 12);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	cqe = expect_datagram(w, b, HEADER + 8);
	assert_int_equal(le16toh(cqe->vlan), 3 << 13 | 12);
	assert_memory_equal(cqe->smac, mac, 6);
	assert_memory_equal((uint8_t *)at(b, b->buf) + 20 + 12, other + 12, 4);
	/* The WQE says which entry it is. */
	to.av.sgid_index = 1;
	set_gid(w, a, 1, other, a->mac, 12);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	cqe = expect_datagram(w, b, HEADER + 8);
	assert_memory_equal(cqe->smac, a->mac, 6);
	to.av.sgid_index = 0;
	/* In a VLAN of none of its entries, it is a frame, that no QP takes. */
	set_gid(w, a, 0, other, mac, 13);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_no_buffer), 1);
}

static void the_qkey(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_wqe_ud to = ud_to(b);

	post_recv(b, b->buf, 4096);
	to.qkey = htole32(QKEY + 1);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, to, 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qkey), 1);
	to.qkey = htole32(SKUA_QKEY_OWN | 0x1234);		/* QKEY is its own */
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	expect_datagram(w, b, HEADER + 8);
	/* One with the upper bit set can be had only so. */
	for (int i = 0; i < 2; i++)
		must(w, &w->n[i], modify_cmd(w->n[i].qpn, SKUA_QP_ATTR_QKEY,
					     (struct skua_qp_attr){ .qkey = htole32(GSI_QKEY) }));
	post_recv(b, b->buf, 4096);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, to, 0);
	expect_datagram(w, b, HEADER + 8);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qkey), 1);
	assert_int_equal(le32toh(((struct skua_qp_attr *)query(w, b, object_cmd(SKUA_CMD_QUERY_QP, b->qpn),
							       128))->qkey), GSI_QKEY);
}

/* Dropped, each for its own reason; and nothing else changes. */
static void what_is_dropped(void **state)
{
	static const uint8_t states[] = { SKUA_QPS_INIT, SKUA_QPS_ERR };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 1 };
	struct train t = datagram(b);
	struct seglist list = { 1, 100, { { at(b, b->buf + 65536), 100 } } };

	/* No receive, one that is too short: it stays for the next. */
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 1);
	post_recv(b, b->buf, HEADER + 99);
	t.payload = &list;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_no_receive), 2);
	expect_none(w, b);
	list.bytes = list.seg[0].len = 99;
	arrive(w, b, a, t);
	expect_datagram(w, b, HEADER + 99);
	post_recv(b, b->buf, 4096);
	t.qkey ^= 1u << 31;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qkey), 1);
	t.qkey = QKEY;
	t.dest_qpn ^= 1;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
	t.dest_qpn = 0xffffff;
	arrive(w, b, a, t);
	t.dest_qpn = 1;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 3);
	/* Of another transport. */
	t.dest_qpn = b->qpn;
	t.transport = TRANSPORT_RC;
	arrive(w, b, a, t);
	t.op = TRAIN_WRITE;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rdma_rx_bad_opcode), 2);
	t = datagram(b);
	/* To a GID, or in a VLAN, that is none of ours: a frame, that no QP takes. */
	memcpy(path.sgid, a->gid, 16);
	memcpy(path.dgid, a->gid, 16);
	memcpy(path.dmac, b->mac, 6);
	t.path = &path;
	arrive(w, b, a, t);
	memcpy(path.dgid, b->gid, 16);
	path.vlan = 5;
	arrive(w, b, a, t);
	assert_int_equal(STAT(w, b, rx_no_buffer), 2);
	expect_none(w, b);
	/* From anybody it is taken. */
	path.vlan = SKUA_VLAN_NONE;
	path.sgid[15] = 99;
	arrive(w, b, a, t);
	expect_datagram(w, b, HEADER);
	for (size_t i = 0; i < sizeof(states); i++) {
		ud_bring(w, b, QKEY, states[i]);
		post_recv(b, b->buf, 4096);
		arrive(w, b, a, datagram(b));
		pass(w, 10000000);			/* receives are not rung */
		if (states[i] == SKUA_QPS_ERR)
			expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
		expect_none(w, b);
	}
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 3 + sizeof(states));
	expect_no_event(w, b);
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);
}

static uint64_t dropped(struct world *w, struct node *n)
{
	return STAT(w, n, rdma_rx_bad_packet) + STAT(w, n, rdma_rx_bad_icrc) +
	       STAT(w, n, rdma_rx_bad_opcode) + STAT(w, n, rdma_rx_bad_pkey);
}

static void seal(uint8_t *packet, size_t len)
{
	uint32_t icrc = htole32(roce_icrc(packet + 14, len - 18));

	memcpy(packet + len - 4, &icrc, 4);
}

/* As bytes from a wire: cut short, changed, of no known kind. */
static void bad_packets(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 1, .sport = 0xc000 };
	uint8_t good[ROCE_MAX_PACKET], bad[ROCE_MAX_PACKET], *bth = bad + 14 + 20 + 8;
	struct seglist list = { 1, 61, { { at(b, b->buf + 65536), 61 } } }, frame = { .n = 1 };
	struct train t = datagram(b);
	uint64_t before;
	size_t len;

	memcpy(path.sgid, a->gid, 16);
	memcpy(path.dgid, b->gid, 16);
	memcpy(path.dmac, b->mac, 6);
	t.path = &path;
	t.payload = &list;
	len = roce_packet_build(good, &t, 0);
	post_recv(b, b->buf, 4096);
#define BAD(counter, n, ...) do {				\
	memcpy(bad, good, len);					\
	__VA_ARGS__;						\
	before = STAT(w, b, counter);				\
	frame.bytes = (uint32_t)(n);				\
	frame.seg[0] = (struct seg){ bad, frame.bytes };	\
	skua_dev_rx_frame(b->dev, &frame);			\
	assert_int_equal(STAT(w, b, counter), before + 1);	\
	expect_none(w, b);					\
} while (0)
	for (size_t cut = 14 + 20 + 8; cut < len; cut++)
		BAD(rdma_rx_bad_packet, cut);
	BAD(rdma_rx_bad_icrc, len, bad[len - 1] ^= 1);
	BAD(rdma_rx_bad_icrc, len, bth[12] ^= 0x40);		/* Q_Key */
	BAD(rdma_rx_bad_icrc, len, bth[17] ^= 1);		/* source QP */
	BAD(rdma_rx_bad_packet, len, bad[14 + 10] ^= 1);	/* checksum of the IPv4 header */
	BAD(rdma_rx_bad_packet, len, bth[1] |= 2; seal(bad, len));	/* version */
	BAD(rdma_rx_bad_pkey, len, bth[2] = 0; seal(bad, len));
	BAD(rdma_rx_bad_opcode, len, bth[0] = 0x60; seal(bad, len));
	BAD(rdma_rx_bad_opcode, len, bth[0] = 0x66; seal(bad, len));
	BAD(rdma_rx_bad_opcode, len, bth[0] = 0x24; seal(bad, len));	/* UC */
	BAD(rdma_rx_bad_qkey, len, bth[15] ^= 1; seal(bad, len));
	BAD(rdma_rx_bad_qp, len, bth[7] ^= 1; seal(bad, len));
	list.bytes = list.seg[0].len = 0;
	len = roce_packet_build(good, &t, 0);
	BAD(rdma_rx_bad_packet, len, bth[1] |= 0x10; seal(bad, len));	/* a pad of nothing */
	BAD(rdma_rx_bad_packet, len, bth[0] = 0x65; seal(bad, len));	/* no immediate */
#undef BAD
	before = dropped(w, b);
	memcpy(bad, good, len);
	skua_dev_rx_frame(b->dev, &frame);
	expect_datagram(w, b, HEADER);
	assert_int_equal(dropped(w, b), before);
	expect_no_event(w, b);
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);
}

static void states_that_receive(void **state)
{
	static const uint8_t states[] = { SKUA_QPS_RTR, SKUA_QPS_RTS, SKUA_QPS_SQD };
	struct world *w = *state;
	struct node *b = &w->n[1];

	for (size_t i = 0; i < sizeof(states); i++) {
		ud_bring(w, b, QKEY, states[i]);
		post_recv(b, b->buf, 4096);
		arrive(w, b, &w->n[0], datagram(b));
		expect_datagram(w, b, HEADER);
	}
	expect_no_event(w, b);
}

/* The receiver's own fault is told to it alone. */
static void bad_receives(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (int i = 0; i < 4; i++) {
		struct { struct skua_rqe r; struct skua_sge s[3]; } rqe = {
			{ .num_sge = 1 }, { { htole64(b->buf), htole32(4096), htole32(b->key) } } };
		static const struct { uint8_t status, vendor; } rows[] = {
			{ SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_SGE_COUNT },
			{ SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT },
			{ SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_KEY_STALE },
			{ SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_ERR_BOUNDS },
		};

		if (i == 0)
			rqe.r.num_sge = 4;
		else if (i == 1)
			rqe.r.rsvd[10] = 1;
		else if (i == 2)
			rqe.s[0].lkey ^= htole32(1);
		else
			rqe.s[0].addr = htole64(b->buf + BUF_SIZE);
		ud_bring(w, b, QKEY, SKUA_QPS_RTS);
		post_rqe(b, &rqe);
		post_recv(b, b->buf, 4096);
		post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, ud_to(b), 0);
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
		expect_vendor(w, b, SKUA_CQE_RECV, rows[i].status, rows[i].vendor);
		expect(w, b, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
		expect_no_event(w, b);
	}
	assert_int_equal(STAT(w, b, rdma_tx_packets), 0);
}

/* Inline data, several SGEs on both sides, unsignaled WQEs that are retired by a later one. */
static void shapes_of_wqes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_wqe_ud u; struct skua_sge s[4]; } wqe = {
		.c = { .opcode = SKUA_WQE_SEND, .nblocks = 2, .num_sge = 3 }, .u = ud_to(b),
		.s = { { htole64(a->buf), htole32(10), htole32(a->key) }, { 0, 0, htole32(~0u) },
		       { htole64(a->buf + 10), htole32(490), htole32(a->key) } } };
	struct { struct skua_rqe r; struct skua_sge s[3]; } rqe = {
		{ .num_sge = 3 }, { { htole64(b->buf), htole32(7), htole32(b->key) },
				    { htole64(b->buf + 7), htole32(40), htole32(b->key) },
				    { htole64(b->buf + 47), htole32(4096), htole32(b->key) } } };
	uint8_t big[10 * 64];

	fill(a, 512, 1);
	post_rqe(b, &rqe);
	post_blocks(a, &wqe, 2);
	expect_datagram(w, b, HEADER + 500);
	assert_memory_equal((uint8_t *)at(b, b->buf) + HEADER, at(a, a->buf), 500);
	memcpy(big, &wqe, 64);
	memcpy(big + 64, at(a, a->buf), 512);
	((struct skua_wqe_ctrl *)big)->num_sge = 0;
	((struct skua_wqe_ctrl *)big)->nblocks = 9;
	((struct skua_wqe_ctrl *)big)->length = htole32(512);
	((struct skua_wqe_ctrl *)big)->flags = SKUA_WQE_INLINE | SKUA_WQE_SIGNALED;
	post_rqe(b, &rqe);
	post_blocks(a, big, 9);
	assert_int_equal(le32toh(await_cqe(w, a)->sq_ci), 11);
	expect_datagram(w, b, HEADER + 512);
	assert_memory_equal((uint8_t *)at(b, b->buf) + HEADER, at(a, a->buf), 512);
	((struct skua_wqe_ctrl *)big)->length = htole32(513);
	((struct skua_wqe_ctrl *)big)->nblocks = 10;
	post_blocks(a, big, 10);
	expect_vendor(w, a, SKUA_CQE_SEND, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_SGE_COUNT);
}

/* Inline data of no bytes: a header, and nothing behind it. */
static void nothing_inline(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct { struct skua_wqe_ctrl c; struct skua_wqe_ud u; } wqe = {
		{ .opcode = SKUA_WQE_SEND, .nblocks = 1, .flags = SKUA_WQE_INLINE }, ud_to(b) };

	post_recv(b, b->buf, HEADER);
	post_blocks(a, &wqe, 1);
	expect_datagram(w, b, HEADER);
}

/* To another QP of the same device, and to oneself. */
static void hairpin(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	uint32_t first = a->qpn;
	struct skua_wqe_ud to = ud_to(a);
	struct queues q;

	fill(a, 64, 3);
	post_recv(a, a->buf + 4096, 4096);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 64, to, 0);
	assert_int_equal(le32toh(expect_datagram(w, a, HEADER + 64)->src_qpn), first);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	assert_memory_equal(at(a, a->buf + 4096 + HEADER), at(a, a->buf), 64);
	q = ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 64, to, 0);	/* no receive there */
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rdma_rx_no_receive), 1);
	q = use_queues(a, q);
	post_recv(a, a->buf + 8192, 4096);
	q = use_queues(a, q);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 64, to, 0);
	assert_int_equal(le32toh(expect_datagram(w, a, HEADER + 64)->qpn), first);
	/* A receive of its own that is no good: it ends between sending and completing. */
	q = use_queues(a, q);
	post_recv(a, a->buf + BUF_SIZE, 4096);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 64, to, 0);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 64, to, 0);
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_LOC_PROT_ERR);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	expect_none(w, a);
}

static void to_err_and_reset(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_recv(a, a->buf, 4096);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_ERR));
	expect(w, a, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
	post_ud(a, SKUA_WQE_SEND, 0, a->buf, 8, ud_to(b), 0);
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_WR_FLUSH_ERR);
	ud_bring(w, a, QKEY, SKUA_QPS_RTS);
	post_recv(b, b->buf, 4096);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, ud_to(b), 0);
	assert_int_equal(le32toh(await_cqe(w, a)->sq_ci), 2);
	expect_datagram(w, b, HEADER + 8);
	expect_no_event(w, a);
}

static void drained(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_recv(b, b->buf, 4096);
	must(w, a, modify_cmd(a->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQD_EVENT,
			      (struct skua_qp_attr){ .state = SKUA_QPS_SQD }));
	expect_event(w, a, SKUA_EVENT_SQ_DRAINED, a->qpn);
	post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 8, ud_to(b), 0);
	expect_none(w, a);
	expect_none(w, b);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RTS));
	expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS);
	expect_datagram(w, b, HEADER + 8);
}

/* GSI */

static void the_gsi_qp(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_wqe_ud to;
	struct skua_cqe *cqe;
	struct skua_cmd cmd;

	arrive(w, b, a, (struct train){ .op = TRAIN_SEND, .transport = TRANSPORT_UD, .first = true,
					.last = true, .npkts = 1, .pmtu = 4096, .dest_qpn = 1 });
	assert_int_equal(STAT(w, b, rdma_rx_bad_qp), 1);
	for (int round = 0; round < 3; round++) {
		ud_queues(w, a, SKUA_QPT_GSI, SKUA_QPS_RTS);
		assert_int_equal(a->qpn, 1);
		cmd = create_qp_cmd(a);
		cmd.create_qp.type = SKUA_QPT_GSI;
		assert_int_equal(command(w, a, &cmd), SKUA_CMD_BAD_PARAM);
		cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
		assert_int_equal(command(w, a, &cmd), SKUA_CMD_NO_RESOURCE);
		if (!round)
			ud_queues(w, b, SKUA_QPT_GSI, SKUA_QPS_RTS);
		to = ud_to(b);
		to.qkey = htole32(SKUA_QKEY_OWN);
		post_recv(b, b->buf, 4096);
		post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf, 256, to, 0);
		assert_int_equal(le32toh(await_cqe(w, a)->qpn), 1);
		cqe = expect_datagram(w, b, HEADER + 256);
		assert_int_equal(le32toh(cqe->qpn), 1);
		assert_int_equal(le32toh(cqe->src_qpn), 1);
		/* It can be had again at once. */
		must(w, a, object_cmd(SKUA_CMD_DESTROY_QP, 1));
	}
}

static void a_feature_that_was_not_accepted(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_UD));
	struct node *b = &w->n[1];

	(void)state;
	for (uint8_t type = SKUA_QPT_UD; type <= SKUA_QPT_GSI; type++) {
		struct skua_cmd cmd = create_qp_cmd(b);

		cmd.create_qp.type = type;
		cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
		assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	}
	arrive(w, b, &w->n[0], datagram(b));
	assert_int_equal(STAT(w, b, rdma_rx_bad_opcode), 1);
	world_destroy(w);
}

/* Two engines */

/* More than a ring between engines holds: none is lost, and all are in order. */
static void a_stream_of_datagrams(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t posted = 0, sent = 0, given = 0, received = 0;
	const uint32_t n = 5000;
	struct skua_cqe *cqe;

	fill(a, 65536, 1);
	while (received < n) {
		for (; given < n && given - received < 1 << LOG_RQ; given++)
			post_recv(b, b->buf + (given % (1 << LOG_RQ)) * 4096ull, 4096);
		/* As many as there are receives. */
		for (; posted < given && posted - sent < 100; posted++)
			post_ud(a, SKUA_WQE_SEND, SKUA_WQE_SIGNALED, a->buf + posted % 1000, 500, ud_to(b), 0);
		while ((cqe = poll_cq(a))) {
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->cookie), 2 * sent++);
		}
		while ((cqe = poll_cq(b))) {
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			assert_int_equal(le32toh(cqe->cookie), received);
			assert_memory_equal(at(b, b->buf + (received % (1 << LOG_RQ)) * 4096ull + HEADER),
					    at(a, a->buf + received % 1000), 500);
			received++;
		}
	}
	while (sent < n)
		expect(w, a, SKUA_CQE_SEND, SKUA_CQE_SUCCESS), sent++;
}

/*
 * When DESTROY_MR or DESTROY_QP of the sender has completed, its memory is not read any more. The receiver's engine is
 * held up meanwhile.
 */
static void senders_go_under_traffic(void **state)
{
	(void)state;
	for (int region = 0; region < 2; region++) {
		struct world *w = world_create(true);
		struct node *a = &w->n[0], *b = &w->n[1];
		struct skua_cqe *cqe;
		pthread_t thread;

		ud_queues(w, a, SKUA_QPT_UD, SKUA_QPS_RTS);
		ud_queues(w, b, SKUA_QPT_UD, SKUA_QPS_RTS);
		memset(at(a, a->buf), 1, 1024);
		memset(at(b, b->buf), 1, 1 << 20);
		for (uint32_t i = 0; i < 60; i++)
			post_recv(b, b->buf + i * 4096, 4096);
		thread = begin_nap(b);
		for (int i = 0; i < 60; i++)
			post_ud(a, SKUA_WQE_SEND, 0, a->buf, 1024, ud_to(b), 0);
		while (!STAT(w, a, rdma_tx_send))
			;
		must(w, a, region ? object_cmd(SKUA_CMD_DESTROY_MR, a->key) :
				    object_cmd(SKUA_CMD_DESTROY_QP, a->qpn));
		memset(at(a, a->buf), 2, 1024);
		pthread_join(thread, NULL);
		must(w, b, state_cmd(b->qpn, SKUA_QPS_RESET));
		while ((cqe = poll_cq(b)))
			if (cqe->status == SKUA_CQE_SUCCESS) {
				const uint8_t *p = at(b, b->buf + le32toh(cqe->cookie) * 4096ull + HEADER);

				for (int i = 0; i < 1024; i++)
					assert_int_equal(p[i], 1);
			}
		world_destroy(w);
	}
}

#define UD(f, rules)	{ rules ": " #f, f, setup_ud, teardown, NULL }
#define ALONE(f, rules)	{ rules ": " #f, f, NULL, NULL, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		UD(datagrams, "UD-1 UD-7 UD-8 ROC-1 ORD-6"),
		UD(bad_wqes, "UD-1 UD-2 UD-3 UD-5 WQE-6"),
		UD(a_queue_in_sqe, "QPS-12 UD-5 ERR-8"),
		UD(the_longest_datagram, "UD-3 PRT-6"),
		UD(a_port_that_is_down, "UD-4"),
		UD(the_entry_of_the_gid, "UD-2 UD-8"),
		UD(the_qkey, "UD-1 UD-6"),
		UD(what_is_dropped, "UD-6 GSI-3"),
		UD(bad_packets, "UD-6 ROC-5 ROC-16"),
		UD(states_that_receive, "UD-6"),
		UD(bad_receives, "UD-9 RQE-4"),
		UD(shapes_of_wqes, "UD-1 WQE-3 RQE-2"),
		UD(nothing_inline, "UD-1 WQE-3"),
		UD(hairpin, "ROC-14 UD-6"),
		UD(to_err_and_reset, "ORD-7 QPS-7"),
		UD(drained, "QPS-10 QPS-11"),
		UD(the_gsi_qp, "GSI-1 GSI-2 GSI-3 QP-3 OBJ-2"),
		ALONE(a_feature_that_was_not_accepted, "FEA-2"),
		{ "UD-4 CQE-2: a_stream_of_datagrams", a_stream_of_datagrams, setup_ud_threaded,
		  teardown, NULL },
		ALONE(senders_go_under_traffic, "MEM-12 UD-4"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
