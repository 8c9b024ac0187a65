// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every command, with good input and with each kind of bad input: the status, and that a command
 * that was refused changed nothing.
 */
#include <stddef.h>

#include "core/device.h"
#include "harness/harness.h"

#define GONE	0x7000000000000000ull	/* no memory is there */

/* A good command, changed in one way, has to be refused in one way. */
#define REFUSED(w, n, base, status, ...) do {				\
	struct skua_cmd cmd_ = base, *c = &cmd_;			\
	int got_;							\
									\
	__VA_ARGS__;							\
	got_ = command(w, n, c);					\
	if (got_ != (status))						\
		fail_msg("%s: status %d, not %d", #__VA_ARGS__, got_, status); \
} while (0)

static void destroy(struct world *w, struct node *n, uint16_t opcode, uint32_t number, int status)
{
	struct skua_cmd cmd = CMD(opcode, .object = { .number = htole32(number) });

	assert_int_equal(command(w, n, &cmd), status);
}

static struct skua_cmd simple(uint16_t opcode, uint8_t port)
{
	struct skua_cmd cmd = CMD(opcode);

	cmd.hdr.port = port;
	return cmd;
}

static void unknown_opcodes(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	static const uint16_t bad[] = { 0x0008, 0x0012, 0x0044, 0x0056, 0x0100, 0x8000, 0xffff };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		REFUSED(w, n, simple(bad[i], 0), SKUA_CMD_BAD_OPCODE, (void)c);
}

/* Header fields and reserved bytes, the same for all commands. */
static void headers(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t out = take(n, 4096);

	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_OK, (void)c);
	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->hdr.flags = htole16(2));
	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->hdr.function = htole16(1));
	REFUSED(w, n, simple(SKUA_CMD_NOP, 1), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->hdr.rsvd0 = 1);
	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->hdr.rsvd1 = 1);
	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->hdr.out_len = htole32(8));
	REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->hdr.out_addr = htole64(out));
	REFUSED(w, n, simple(SKUA_CMD_QUERY_PORT, 0), SKUA_CMD_BAD_PARAM,
		c->hdr.out_addr = htole64(out), c->hdr.out_len = htole32(64));
	for (unsigned int i = 0; i < sizeof(((struct skua_cmd *)0)->body); i++)
		REFUSED(w, n, simple(SKUA_CMD_NOP, 0), SKUA_CMD_BAD_PARAM, c->body[i] = 1);
}

/* Each byte of a body that no field takes has to be zero. */
static void reserved_bytes(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd eq = create_eq_cmd(n), cq = create_cq_cmd(n), qp = create_qp_cmd(n);
	struct skua_cmd mr = create_mr_cmd(n);

	for (unsigned int i = 128; i < 224; i++) {
		REFUSED(w, n, eq, SKUA_CMD_BAD_PARAM, c->body[i] = 1);
		REFUSED(w, n, cq, SKUA_CMD_BAD_PARAM, c->body[i] = 1);
		REFUSED(w, n, mr, SKUA_CMD_BAD_PARAM, c->body[i] = 1);
	}
	for (unsigned int i = 192; i < 224; i++)
		REFUSED(w, n, qp, SKUA_CMD_BAD_PARAM, c->body[i] = 1);
}

#define F(name)		(1ull << SKUA_F_##name)
#define CAP(name)	offsetof(struct skua_device_caps, name)

/* Features without others that they need: nothing of them exists, and ACCEPTED keeps what was written. */
static void features_that_lack_others(void **state)
{
	static const struct {
		uint64_t without;
		uint16_t opcode;	/* a command of the feature, or 0 */
		size_t cap;		/* one of its limits, or 0 */
		uint32_t right;		/* of MRs, or 0 */
		uint8_t type;		/* of MRs, or 0 */
	} rows[] = {
		{ F(SRQ), SKUA_CMD_CREATE_XRCD, CAP(max_xrcd), 0, 0 },
		{ F(RC), SKUA_CMD_CREATE_XRCD, CAP(max_xrcd), SKUA_ACCESS_REMOTE_ATOMIC, 0 },
		{ F(RC), 0, CAP(flush_caps), SKUA_ACCESS_FLUSH_GLOBAL, 0 },
		{ F(RC), 0, CAP(max_tags), 0, 0 },
		{ F(UD), 0, CAP(max_tags), 0, 0 },
		{ F(SRQ), 0, CAP(max_tags), 0, 0 },
		{ F(RC) | F(UC), SKUA_CMD_CREATE_MW, CAP(max_mw), SKUA_ACCESS_MW_BIND, 0 },
		{ F(RC) | F(UC), SKUA_CMD_DESTROY_MW, CAP(max_fast_pages), 0, SKUA_MR_FAST },
		{ F(RC) | F(UC), 0, CAP(max_fast_pieces), 0, 0 },
		{ F(INVALIDATE), 0, CAP(max_fast_pages), 0, SKUA_MR_FAST },
		{ F(FAST_REG), 0, CAP(max_fast_pieces), 0, 0 },
		{ F(ETHERNET), SKUA_CMD_SET_RSS, CAP(max_tso), 0, 0 },
		{ F(ETHERNET), SKUA_CMD_CREATE_RSS, CAP(max_rss), 0, 0 },
		{ F(ETHERNET), SKUA_CMD_CREATE_FLOW, CAP(max_flow), 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = world_create_with(false, ~rows[i].without);
		struct node *n = &w->n[0];
		struct skua_cmd cmd = simple(rows[i].opcode, rows[i].opcode == SKUA_CMD_SET_RSS), mr = create_mr_cmd(n);
		uint8_t *caps;

		mr.create_mr.access |= htole32(rows[i].right);
		mr.create_mr.type = rows[i].type;
		if (rows[i].opcode && command(w, n, &cmd) != SKUA_CMD_BAD_OPCODE)
			fail_msg("row %zu: command", i);
		if ((rows[i].right || rows[i].type) && command(w, n, &mr) != SKUA_CMD_BAD_PARAM)
			fail_msg("row %zu: MR", i);
		caps = query(w, n, simple(SKUA_CMD_QUERY_DEVICE, 0), sizeof(struct skua_device_caps));
		if (rows[i].cap && *(__le32 *)(void *)(caps + rows[i].cap))
			fail_msg("row %zu: limit", i);
		assert_int_equal(reg_read(n, SKUA_REG_ACCEPTED_LO), (uint32_t)(FEATURES_OFFERED & ~rows[i].without));
		assert_int_equal(reg_read(n, SKUA_REG_ACCEPTED_HI), (FEATURES_OFFERED & ~rows[i].without) >> 32);
		world_destroy(w);
	}
}

/* One of two features that serve is enough. */
static void features_that_lack_nothing(void **state)
{
	static const uint64_t without[] = { F(RC), F(UC) };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct world *w = world_create_with(false, ~without[i]);
		struct node *n = &w->n[0];
		struct skua_cmd mw = simple(SKUA_CMD_CREATE_MW, 0), mr = create_mr_cmd(n);
		struct skua_device_caps *caps = query(w, n, simple(SKUA_CMD_QUERY_DEVICE, 0), sizeof(*caps));

		assert_true(caps->max_mw && caps->max_fast_pieces);
		mw.create_mw.pdn = htole32(n->pdn);
		mw.create_mw.type = SKUA_MW_TYPE_1;
		must(w, n, mw);
		mr.create_mr.type = SKUA_MR_FAST;
		must(w, n, mr);
		world_destroy(w);
	}
}

static void outputs(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint64_t out = take(n, 4096);
	uint8_t *bytes = at(n, out);
	struct skua_device_caps *caps = at(n, out);
	struct skua_cmd cmd = simple(SKUA_CMD_QUERY_DEVICE, 0);

	memset(bytes, 0xee, 4096);
	cmd.hdr.out_addr = htole64(out);
	cmd.hdr.out_len = htole32(4096);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	assert_int_equal(n->out_len, sizeof(*caps));
	assert_int_equal(bytes[sizeof(*caps)], 0xee);
	assert_true(le32toh(caps->max_qp) >= 1000);
	assert_true(le16toh(caps->max_send_sge) >= 30);
	assert_true(le16toh(caps->max_recv_sge) >= 30);
	/* A host of an older version takes less. */
	memset(bytes, 0xee, 4096);
	cmd.hdr.out_len = htole32(8);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	assert_int_equal(bytes[7] != 0xee || bytes[0] != 0xee, 1);
	assert_int_equal(bytes[8], 0xee);
	assert_int_equal(n->out_len, 8);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_ADDRESS, c->hdr.out_addr = htole64(GONE));
	assert_int_equal(n->out_len, 0);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->hdr.out_addr = htole64(out + 4));
	/* Without a buffer there is no output: DMA address 0 is never written. */
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->hdr.out_addr = 0);
	cmd.hdr.out_addr = cmd.hdr.out_len = 0;
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	assert_int_equal(n->out_len, 0);
}

static void ports(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = simple(SKUA_CMD_SET_PORT, 1);
	uint64_t out = take(n, 64);
	struct skua_port_attr *attr = at(n, out);
	struct skua_cmd query = simple(SKUA_CMD_QUERY_PORT, 1);

	cmd.set_port.mask = htole32(SKUA_PORT_SET_MTU);
	cmd.set_port.mtu = htole32(9000);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	query.hdr.out_addr = htole64(out);
	query.hdr.out_len = htole32(64);
	assert_int_equal(command(w, n, &query), SKUA_CMD_OK);
	assert_int_equal(le32toh(attr->mtu), 9000);
	assert_memory_equal(attr->mac, n->mac, 6);
	/* Fields of what is not named do not count. */
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->set_port.flags = htole32(0x10), c->set_port.mac[0] = 1,
		c->set_port.rx_qpn = htole32(0xabcdef));
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->set_port.mask = 0, c->set_port.mtu = htole32(67));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_port.mtu = htole32(67));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_port.mtu = htole32(70000));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_port.mask = htole32(0x10));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_port.mask = htole32(SKUA_PORT_SET_FLAGS),
		c->set_port.flags = htole32(0x10));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_port.mask = htole32(SKUA_PORT_SET_MAC),
		c->set_port.mac[0] = 1);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->set_port.mask = htole32(SKUA_PORT_SET_RX_QP),
		c->set_port.rx_qpn = htole32(0xabcdef));
	/* That is looked at before any range. */
	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->set_port.mask |= htole32(SKUA_PORT_SET_RX_QP),
		c->set_port.rx_qpn = htole32(0xabcdef), c->set_port.mtu = 0);
	/* Both or none; and what is not named stays. */
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_port.mask |= htole32(SKUA_PORT_SET_MAC),
		c->set_port.mtu = htole32(1500));		/* no MAC */
	assert_int_equal(command(w, n, &query), SKUA_CMD_OK);
	assert_int_equal(le32toh(attr->mtu), 9000);
	assert_int_equal(le32toh(attr->flags), SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE);
}

static void gids(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = simple(SKUA_CMD_SET_GID, 1);

	cmd.set_gid = (struct skua_cmd_set_gid){
		.gid = { 0x20, 1, 0x0d, 0xb8, [15] = 1 }, .mac = { 2, 0, 0, 0, 0, 1 },
		.vlan = htole16(SKUA_VLAN_NONE), .index = htole16(3) };
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->set_gid.vlan = htole16(4094));
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->set_gid.vlan = htole16(7), c->set_gid.index = htole16(4));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_gid.vlan = htole16(0));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_gid.vlan = htole16(4095));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_gid.index = htole16(0xfff0));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->set_gid.mac[0] = 1);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, memset(c->set_gid.mac, 0, 6));
	REFUSED(w, n, cmd, SKUA_CMD_OK, memset(&c->set_gid, 0, 24));	/* clears the entry */
}

static void event_queues(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_eq_cmd(n);
	uint32_t number;

	cmd.create_eq.dbr_addr = htole64(take(n, 64));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_eq.type = 3);
	REFUSED(w, n, cmd, SKUA_CMD_NO_RESOURCE, c->create_eq.type = SKUA_EQ_ASYNC,
		c->create_eq.log_size = 2, c->create_eq.vector = 0);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_eq.vector = htole16(0x7ff));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_eq.log_size = 31);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_eq.dbr_addr |= htole64(8));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_ADDRESS, c->create_eq.dbr_addr = htole64(GONE));
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	number = n->number;
	destroy(w, n, SKUA_CMD_DESTROY_EQ, n->eqn, SKUA_CMD_BUSY);
	destroy(w, n, SKUA_CMD_DESTROY_EQ, number, SKUA_CMD_OK);
	destroy(w, n, SKUA_CMD_DESTROY_EQ, 0, SKUA_CMD_BAD_OBJECT);
	destroy(w, n, SKUA_CMD_DESTROY_EQ, 0xffffffff, SKUA_CMD_BAD_OBJECT);
}

static void completion_queues(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_cq_cmd(n);
	uint32_t number;

	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->create_cq.eqn = htole32(0xabcdef));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.eqn = htole32(n->aeqn));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.log_size = 32);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.db_page = htole32(0x7fffffff));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.dbr_addr |= htole64(4));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_ADDRESS, c->create_cq.dbr_addr = htole64(GONE));
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	number = n->number;
	assert_int_not_equal(number, n->cqn);
	destroy(w, n, SKUA_CMD_DESTROY_CQ, n->cqn, SKUA_CMD_BUSY);
	destroy(w, n, SKUA_CMD_DESTROY_CQ, number, SKUA_CMD_OK);
	destroy(w, n, SKUA_CMD_DESTROY_CQ, number, SKUA_CMD_BAD_OBJECT);
}

/* In the header of a list, and in a list page. */
static void entries_that_are_not_present(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cq = create_cq_cmd(n), mr = create_mr_cmd(n);
	uint64_t leaf = take(n, 4096), *entries = at(n, leaf);

	REFUSED(w, n, mr, SKUA_CMD_BAD_PARAM, c->create_mr.pages.addr[0] &= ~htole64(SKUA_PL_PRESENT));
	REFUSED(w, n, cq, SKUA_CMD_BAD_PARAM, c->create_cq.ring.addr[0] &= ~htole64(SKUA_PL_PRESENT));
	mr.create_mr.length = htole64(2 * 4096);
	mr.create_mr.pages = (struct skua_pagelist){
		.npages = htole32(2), .level = 1, .log_page = 12, .addr[0] = htole64(leaf | SKUA_PL_PRESENT) };
	entries[0] = htole64(n->buf | SKUA_PL_PRESENT);
	entries[1] = htole64(n->buf);
	REFUSED(w, n, mr, SKUA_CMD_BAD_PARAM, (void)c);
	entries[1] = htole64(n->buf | SKUA_PL_PRESENT);
	REFUSED(w, n, mr, SKUA_CMD_OK, (void)c);
}

/* One page list stands for those of all queues and regions. */
static void page_lists(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_cq_cmd(n);
	struct skua_cmd mr = create_mr_cmd(n);
	uint64_t lists = take(n, 4096), ring = take(n, 5 * 4096);
	struct skua_cmd askew = cmd;

	/* Where a ring begins amid a page, it takes a page more. */
	askew.create_cq.ring = list(ring, 5 * 4096);
	REFUSED(w, n, askew, SKUA_CMD_BAD_PARAM, (void)c);	/* 5 pages where 4 will do */
	REFUSED(w, n, askew, SKUA_CMD_BAD_PARAM, c->create_cq.ring.npages = htole32(3), c->create_cq.ring.addr[3] = 0,
		c->create_cq.ring.addr[4] = 0);
	REFUSED(w, n, askew, SKUA_CMD_BAD_PARAM, c->create_cq.ring.offset = htole64(4096));
	REFUSED(w, n, askew, SKUA_CMD_BAD_PARAM, c->create_cq.ring.offset = htole64(32));
	REFUSED(w, n, askew, SKUA_CMD_OK, c->create_cq.ring.offset = htole64(64));
	REFUSED(w, n, askew, SKUA_CMD_BAD_PARAM, c->create_cq.ring.log_page = 30, c->create_cq.ring.npages = htole32(1),
		memset(&c->create_cq.ring.addr[1], 0, 5 * 8));	/* not aligned to that */
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.npages = 0);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.npages = htole32(2));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.npages = htole32(7));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.level = 4);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.log_page = 11);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.log_page = 31);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.addr[0] &= ~htole64(SKUA_PL_PRESENT));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.addr[0] |= htole64(2));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.addr[5] = htole64(IOVA | 1));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_cq.ring.offset = htole64(1ull << 40));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_ADDRESS, c->create_cq.ring.addr[0] = htole64(GONE | 1));
	REFUSED(w, n, mr, SKUA_CMD_BAD_ADDRESS, c->create_mr.pages.level = 1,
		c->create_mr.pages.addr[0] = htole64(GONE | 1));
	/* A list page whose entry is absent, and one that names memory that is not there. */
	REFUSED(w, n, mr, SKUA_CMD_BAD_PARAM, c->create_mr.pages.level = 1,
		c->create_mr.pages.addr[0] = htole64(lists | 1));
	((uint64_t *)at(n, lists))[0] = htole64(GONE | 1);
	REFUSED(w, n, mr, SKUA_CMD_BAD_ADDRESS, c->create_mr.pages.level = 1,
		c->create_mr.pages.addr[0] = htole64(lists | 1));
	((uint64_t *)at(n, lists))[0] = htole64(n->buf | 1);
	REFUSED(w, n, mr, SKUA_CMD_OK, c->create_mr.pages.level = 1,
		c->create_mr.pages.addr[0] = htole64(lists | 1));
}

/* Pages in reverse order, so that each entry of each list page counts. */
static void a_list_of_two_levels(void **state)
{
	const uint32_t npages = BUF_SIZE / 4096;
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t lists = take(b, 3 * 4096);
	__le64 *entry = at(b, lists);
	struct skua_cmd mr = create_mr_cmd(b);

	for (uint32_t i = 0; i < npages / 512; i++)
		entry[i] = htole64((lists + (i + 1) * 4096) | SKUA_PL_PRESENT);
	for (uint32_t i = 0; i < npages; i++)
		entry[512 + i] = htole64((b->buf + (npages - 1 - i) * 4096) | SKUA_PL_PRESENT);
	mr.create_mr.length = htole64(BUF_SIZE);
	mr.create_mr.pages = (struct skua_pagelist){ .npages = htole32(npages), .level = 2, .log_page = 12,
						     .addr = { htole64(lists | SKUA_PL_PRESENT) } };
	REFUSED(w, b, mr, SKUA_CMD_BAD_PARAM, c->create_mr.pages.level = 1,	/* it holds no more than 512 */
		c->create_mr.pages.addr[0] = htole64((lists + 4096) | SKUA_PL_PRESENT));
	b->key = must(w, b, mr);
	fill(a, 4096, 3);
	for (uint32_t i = 0; i < npages; i += 511) {
		memset(at(b, b->buf), 0, BUF_SIZE);
		post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 4096, b->buf + i * 4096, b->key, 0);
		expect(w, a, SKUA_CQE_WRITE, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(b, b->buf + (npages - 1 - i) * 4096), at(a, a->buf), 4096);
	}
}

static void queue_pairs(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_qp_cmd(n);
	uint32_t number;

	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->create_qp.pdn = htole32(0xabcdef));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->create_qp.send_cqn = htole32(0xabcdef));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->create_qp.recv_cqn = 0);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.type = 0);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.type = 0xff);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.type = SKUA_QPT_GSI);	/* not privileged */
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.log_sq_blocks = 31);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.log_rq_size = 31);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.log_rq_stride = 3);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.log_rq_stride = 20);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.flags = htole32(2));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.db_page = htole32(0x7fffffff));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.sq_dbr_addr |= htole64(8));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_qp.rq_dbr_addr |= htole64(8));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_ADDRESS, c->create_qp.rq_dbr_addr = htole64(GONE));
	/* The device writes to that of the SQ. */
	unmap_extra(n);
	map_extra(n, false);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_ADDRESS, c->create_qp.sq_dbr_addr = htole64(EXTRA));
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->create_qp.rq_dbr_addr = htole64(EXTRA));
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	number = n->number;
	assert_int_equal(qp_state(w, n, number), SKUA_QPS_RESET);
	assert_true(number > 1);
	destroy(w, n, SKUA_CMD_DESTROY_PD, n->pdn, SKUA_CMD_BUSY);
	destroy(w, n, SKUA_CMD_DESTROY_QP, number, SKUA_CMD_OK);
	destroy(w, n, SKUA_CMD_DESTROY_QP, number, SKUA_CMD_BAD_OBJECT);
}

/* Rings may be where the device may only read, unless it writes them. */
static void rings_that_are_only_read(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd qp = create_qp_cmd(n), cq = create_cq_cmd(n), eq = create_eq_cmd(n);

	unmap_extra(n);
	map_extra(n, false);
	qp.create_qp.sq = list(EXTRA, 64u << LOG_SQ);
	qp.create_qp.rq = list(EXTRA + EXTRA_SIZE / 2, 64u << LOG_RQ);
	cq.create_cq.ring = list(EXTRA, 64u << n->log_cq);
	eq.create_eq.ring = list(EXTRA, 16 * 16);
	must(w, n, qp);
	assert_int_equal(command(w, n, &cq), SKUA_CMD_BAD_ADDRESS);
	assert_int_equal(command(w, n, &eq), SKUA_CMD_BAD_ADDRESS);
	unmap_extra(n);
	map_extra(n, true);
	must(w, n, cq);
	must(w, n, eq);
}

static void qp_states(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0], *peer = &w->n[1];
	struct skua_cmd cmd = create_qp_cmd(n);
	uint32_t q;

	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	q = n->number;
	REFUSED(w, n, init_cmd(0xabcdef), SKUA_CMD_BAD_OBJECT, (void)c);
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_STATE, (void)c);
	REFUSED(w, n, rts_cmd(q), SKUA_CMD_BAD_STATE, (void)c);
	REFUSED(w, n, init_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.mask &= ~htole32(SKUA_QP_ATTR_ACCESS));
	REFUSED(w, n, init_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.mask |= htole32(SKUA_QP_ATTR_SQ_PSN));
	REFUSED(w, n, init_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.mask |= htole32(0x8000));
	REFUSED(w, n, init_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.pkey_index = htole16(1));
	REFUSED(w, n, init_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.access = htole32(0x400));
	assert_int_equal(qp_state(w, n, q), SKUA_QPS_RESET);
	REFUSED(w, n, init_cmd(q), SKUA_CMD_OK, (void)c);
	REFUSED(w, n, init_cmd(q), SKUA_CMD_OK, (void)c);		/* INIT to INIT */
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.path_mtu = 0);
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.path_mtu = 6);
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.min_rnr_timer = 32);
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.rq_psn = htole32(1 << 24));
	REFUSED(w, n, rtr_cmd(q, peer, 1 << 24), SKUA_CMD_BAD_PARAM, (void)c);
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_PARAM,
		c->modify_qp.attr.max_dest_rd_atomic = htole16(0xffff));
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.av.sgid_index = 9);
	assert_int_equal(qp_state(w, n, q), SKUA_QPS_INIT);
	REFUSED(w, n, rtr_cmd(q, peer, peer->qpn), SKUA_CMD_OK, (void)c);
	REFUSED(w, n, rts_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.retry_cnt = 8);
	REFUSED(w, n, rts_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.rnr_retry = 8);
	REFUSED(w, n, rts_cmd(q), SKUA_CMD_BAD_PARAM, c->modify_qp.attr.timeout = 32);
	REFUSED(w, n, rts_cmd(q), SKUA_CMD_OK, (void)c);
	REFUSED(w, n, init_cmd(q), SKUA_CMD_BAD_STATE, (void)c);
	assert_int_equal(qp_state(w, n, q), SKUA_QPS_RTS);
	REFUSED(w, n, init_cmd(q), SKUA_CMD_OK, c->modify_qp.mask = htole32(SKUA_QP_ATTR_STATE),
		c->modify_qp.attr.state = SKUA_QPS_ERR);
	assert_int_equal(qp_state(w, n, q), SKUA_QPS_ERR);
	REFUSED(w, n, rts_cmd(q), SKUA_CMD_BAD_STATE, (void)c);
	REFUSED(w, n, init_cmd(q), SKUA_CMD_OK, c->modify_qp.mask = htole32(SKUA_QP_ATTR_STATE),
		c->modify_qp.attr.state = SKUA_QPS_RESET);
	assert_int_equal(qp_state(w, n, q), SKUA_QPS_RESET);
}

static void memory_regions(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd = create_mr_cmd(n);
	struct skua_cmd phys = CMD(SKUA_CMD_CREATE_MR, .create_mr = { .type = SKUA_MR_PHYS, .pdn = cmd.create_mr.pdn });
	uint32_t key;

	REFUSED(w, n, cmd, SKUA_CMD_BAD_OBJECT, c->create_mr.pdn = htole32(0xabcdef));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.type = 7);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.access = htole32(0x80));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.access = htole32(SKUA_ACCESS_REMOTE_WRITE));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.access = htole32(SKUA_ACCESS_REMOTE_ATOMIC));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.length = 0);
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.length = htole64(4097));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.length = htole64(~0ull));
	REFUSED(w, n, cmd, SKUA_CMD_BAD_PARAM, c->create_mr.iova = htole64((~0ull << 12) + 1));
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->create_mr.iova = htole64(~0ull << 12));
	REFUSED(w, n, cmd, SKUA_CMD_OK, c->create_mr.length = 0,
		c->create_mr.pages = (struct skua_pagelist){ 0 });
	destroy(w, n, SKUA_CMD_DESTROY_MR, n->number, SKUA_CMD_OK);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_OK);
	key = n->number;
	assert_int_not_equal(key >> 8, n->key >> 8);
	REFUSED(w, n, phys, SKUA_CMD_BAD_PARAM, c->create_mr.iova = htole64(4096));
	REFUSED(w, n, phys, SKUA_CMD_BAD_PARAM, c->create_mr.length = htole64(4096));
	REFUSED(w, n, phys, SKUA_CMD_BAD_PARAM, c->create_mr.pages.npages = htole32(1));
	REFUSED(w, n, phys, SKUA_CMD_OK, (void)c);
	destroy(w, n, SKUA_CMD_DESTROY_MR, key ^ 1, SKUA_CMD_BAD_OBJECT);	/* another variant */
	destroy(w, n, SKUA_CMD_DESTROY_MR, key, SKUA_CMD_OK);
	destroy(w, n, SKUA_CMD_DESTROY_MR, key, SKUA_CMD_BAD_OBJECT);
}

/* Numbers that were freed do not come back soon. */
static void numbers_are_not_given_again_soon(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd pd = simple(SKUA_CMD_CREATE_PD, 0);
	uint32_t first;

	assert_int_equal(command(w, n, &pd), SKUA_CMD_OK);
	first = n->number;
	destroy(w, n, SKUA_CMD_DESTROY_PD, first, SKUA_CMD_OK);
	for (int i = 0; i < 1024; i++) {
		assert_int_equal(command(w, n, &pd), SKUA_CMD_OK);
		assert_int_not_equal(n->number, first);
		destroy(w, n, SKUA_CMD_DESTROY_PD, n->number, SKUA_CMD_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(unknown_opcodes, "CMD-11 FEA-2"),
		STEPPED(headers, "CMD-11 CMD-17 GEN-2 GRO-5"),
		STEPPED(reserved_bytes, "GEN-2"),
		{ "FEA-1 FEA-2 LIM-1: features_that_lack_others", features_that_lack_others, NULL, NULL, NULL },
		{ "FEA-1: features_that_lack_nothing", features_that_lack_nothing, NULL, NULL, NULL },
		STEPPED(outputs, "CMD-11 CMD-15 CMD-16 LIM-4 GRO-3"),
		STEPPED(ports, "PRT-1 PRT-2 CMD-11 CMD-12"),
		STEPPED(gids, "GID-1 GID-2 GID-3"),
		STEPPED(event_queues, "EQ-1 EQ-2 OBJ-7 OBJ-8 CMD-11 PCI-2"),
		STEPPED(completion_queues, "CQ-1 OBJ-7 OBJ-8 CMD-14"),
		STEPPED(page_lists, "PL-1 PL-2 PL-3 PL-4 PL-5 PL-8 PL-9"),
		STEPPED(a_list_of_two_levels, "PL-2 PL-3"),
		STEPPED(entries_that_are_not_present, "GRO-7 PL-1"),
		STEPPED(queue_pairs, "QP-1 QP-3 OBJ-1 OBJ-2 OBJ-7 OBJ-8 CMD-13"),
		STEPPED(rings_that_are_only_read, "PL-8"),
		STEPPED(qp_states, "QPS-1 QPS-3 QPS-4 QPS-8 QP-6 GID-4"),
		STEPPED(memory_regions, "MR-1 MR-2 MR-3 MR-4 MR-8 OBJ-3"),
		STEPPED(numbers_are_not_given_again_soon, "OBJ-4"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
