// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* RSS objects: how they spread the frames of flows over raw packet QPs. */
#include "core/qp.h"
#include "harness/raw.h"

/* By the definition of ETH-14, bit by bit. */
static uint32_t toeplitz(const uint8_t *bytes, size_t n, const uint8_t *key)
{
	uint32_t hash = 0;

	for (size_t bit = 0; bit < n * 8; bit++)
		for (size_t i = 0; i < 32 && bytes[bit / 8] & 0x80 >> bit % 8; i++)
			hash ^= (uint32_t)(key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1) << (31 - i);
	return hash;
}

/* An RSS object over these QPs. */
static struct skua_cmd rss_cmd(const struct queues *q, uint8_t log_size, uint32_t fields)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_CREATE_RSS, .rss = { .log_size = log_size, .fields = htole32(fields) });

	for (unsigned int i = 0; i < 1u << log_size; i++)
		cmd.rss.qpn[i] = htole32(q[i].qpn);
	for (uint8_t i = 0; i < SKUA_RSS_KEY_LEN; i++)
		cmd.rss.key[i] = (uint8_t)(i * 37 + 11);
	return cmd;
}

/* To this MAC, spread. */
static struct skua_cmd spread_flow(uint32_t rssn, const uint8_t *dmac)
{
	struct skua_cmd cmd = mac_flow(0, dmac);

	cmd.flow.rssn = htole32(rssn);
	return cmd;
}

/* Each choice of fields, of each kind of frame: those that the frame has are hashed, in their order. */
static void frames_are_spread(void **state)
{
	static const unsigned int kinds[] = { 0, 4, 5, 6, 8 };	/* none, UDP, TCP with a tag, a fragment, neither */
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to[4];

	for (unsigned int i = 0; i < 4; i++)
		to[i] = with_receives(b, raw_qp(w, b), 0);
	for (uint32_t fields = 0; fields <= SKUA_HASH_MASK; fields++) {
		struct skua_cmd cmd = rss_cmd(to, 2, fields);
		uint32_t rssn = must(w, b, cmd), flow = must(w, b, spread_flow(rssn, raw_frames[0].bytes));

		for (unsigned int k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			const struct skua_flow_key *key = &raw_frames[kinds[k]].key;
			uint32_t ports = fields >> (key->headers & SKUA_FLOW_TCP ? 4 : 6) & 3, hash;
			uint8_t bytes[12];
			struct skua_cqe *cqe;
			size_t n = 0;

			if (key->headers & SKUA_FLOW_IPV4 && fields & SKUA_HASH_SRC_IPV4)
				memcpy(bytes + n, key->src_ip, 4), n += 4;
			if (key->headers & SKUA_FLOW_IPV4 && fields & SKUA_HASH_DST_IPV4)
				memcpy(bytes + n, key->dst_ip, 4), n += 4;
			if (!(key->headers & (SKUA_FLOW_TCP | SKUA_FLOW_UDP)))
				ports = 0;
			if (ports & 1)
				memcpy(bytes + n, &key->src_port, 2), n += 2;
			if (ports & 2)
				memcpy(bytes + n, &key->dst_port, 2), n += 2;
			hash = toeplitz(bytes, n, cmd.rss.key);
			to[hash & 3] = with_receives(b, to[hash & 3], 1);
			memcpy(at(a, a->buf), raw_frames[kinds[k]].bytes, raw_frames[kinds[k]].len);
			send_from(w, a, &from, raw_frames[kinds[k]].len);
			cqe = expect_by(w, b, to[hash & 3], raw_frames[kinds[k]].len);
			assert_int_equal(le32toh(cqe->rss_hash), hash);
			assert_int_equal(!!(cqe->flags & SKUA_CQE_L4_HASH), !!ports);
		}
		must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, flow));
		must(w, b, object_cmd(SKUA_CMD_DESTROY_RSS, rssn));
	}
}

static void spreading_of_ipv6(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 4);
	static const uint32_t fields[] = { SKUA_HASH_SRC_IPV6, SKUA_HASH_DST_IPV6, SKUA_HASH_SRC_IPV4 | SKUA_HASH_DST_IPV4,
					   SKUA_HASH_DST_IPV6 | SKUA_HASH_DST_PORT_UDP | SKUA_HASH_DST_PORT_TCP };
	unsigned int f = 0;

	while (strcmp(raw_frames[f].name, "IPv6, UDP"))
		f++;
	memcpy(at(a, a->buf), raw_frames[f].bytes, raw_frames[f].len);
	for (unsigned int i = 0; i < 4; i++) {
		struct skua_cmd cmd = rss_cmd(&to, 0, fields[i]);
		uint32_t rssn = must(w, b, cmd), flow = must(w, b, spread_flow(rssn, raw_frames[f].bytes));
		uint8_t bytes[18];
		size_t n = i == 2 ? 0 : 16;

		memcpy(bytes, i ? raw_frames[f].key.dst_ip : raw_frames[f].key.src_ip, 16);
		if (i == 3)
			memcpy(bytes + n, &raw_frames[f].key.dst_port, 2), n += 2;
		send_from(w, a, &from, raw_frames[f].len);
		assert_int_equal(le32toh(expect_by(w, b, to, raw_frames[f].len)->rss_hash),
				 toeplitz(bytes, n, cmd.rss.key));
		must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, flow));
		must(w, b, object_cmd(SKUA_CMD_DESTROY_RSS, rssn));
	}
}

static void rss_objects_that_are_refused(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct queues q[2] = { raw_qp(w, n), raw_qp(w, n) };
	struct skua_cmd good = rss_cmd(q, 1, SKUA_HASH_MASK), cmd, flow;
	uint32_t rssn;

#define REFUSED(status, ...) do {					\
	cmd = good;							\
	__VA_ARGS__;							\
	assert_int_equal(command(w, n, &cmd), status);			\
} while (0)
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.log_size = 6);
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.log_size = 0xff);
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd.rss.log_size = 2);		/* entries of no QP */
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd.rss.qpn[1] = 0);
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd.rss.qpn[0] = htole32(q[0].qpn ^ 0x800000));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.qpn[1] = htole32(n->qpn));	/* RC */
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.qpn[2] = htole32(q[0].qpn));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.qpn[31] = htole32(1));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.fields = htole32(0x100));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd.rss.fields = htole32(0x80000001));
	for (unsigned int i = 1; i < 4; i++)
		REFUSED(SKUA_CMD_BAD_PARAM, cmd.body[i] = 1);
	for (unsigned int i = 176; i < 224; i++)
		REFUSED(SKUA_CMD_BAD_PARAM, cmd.body[i] = 1);
	rssn = must(w, n, good);
	REFUSED(SKUA_CMD_BAD_PARAM, cmd = spread_flow(rssn, n->mac), cmd.flow.qpn = htole32(q[0].qpn));
	REFUSED(SKUA_CMD_BAD_PARAM, cmd = spread_flow(0, n->mac));
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd = spread_flow(rssn + 1, n->mac));
	flow = object_cmd(SKUA_CMD_DESTROY_FLOW, must(w, n, spread_flow(rssn, n->mac)));
	REFUSED(SKUA_CMD_BUSY, cmd = object_cmd(SKUA_CMD_DESTROY_RSS, rssn));
	must(w, n, flow);
	REFUSED(SKUA_CMD_OK, cmd = object_cmd(SKUA_CMD_DESTROY_RSS, rssn));
	REFUSED(SKUA_CMD_BAD_OBJECT, cmd = object_cmd(SKUA_CMD_DESTROY_RSS, rssn));
#undef REFUSED
}

static void as_many_rss_objects_as_there_are(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct queues q = raw_qp(w, n);
	struct skua_device_caps *caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
	struct skua_cmd cmd = rss_cmd(&q, 0, 0);
	uint32_t max = le32toh(caps->max_rss), number = 0;

	assert_in_range(max, 1, 65536);
	for (uint32_t i = 0; i < max; i++)
		number = must(w, n, cmd);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_NO_RESOURCE);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_RSS, number));
	must(w, n, cmd);
	/* A reset ends all of them, and the next ones are served. */
	revive(w, n);
	q = raw_qp(w, n);
	cmd = rss_cmd(&q, 0, 0);
	for (uint32_t i = 0; i < max; i++)
		must(w, n, cmd);
}

/* The number of a QP that went may come again: it is another QP. */
static void entries_of_qps_that_went(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), gone = raw_qp(w, b), other = with_receives(b, raw_qp(w, b), 2);
	uint32_t rssn = must(w, b, rss_cmd(&gone, 0, 0));
	struct skua_qp *qp;

	must(w, b, spread_flow(rssn, b->mac));
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, gone.qpn));
	send_to(w, a, &from, b->mac);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_no_buffer), 1);
	/* As if the other had the number. */
	qp = numtab_get(&b->dev->qps, other.qpn);
	rssn = must(w, b, rss_cmd(&other, 0, 0));
	must(w, b, spread_flow(rssn, group));
	send_to(w, a, &from, group);
	expect_by(w, b, other, FRAME);
	qp->serial += 1000;
	send_to(w, a, &from, group);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_no_buffer), 2);
}

/* RAW-9: the sender is not the target either when an RSS object chooses. */
static void spread_frames_loop_back(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0];
	struct queues q[2] = { with_receives(a, raw_qp(w, a), 2), with_receives(a, raw_qp(w, a), 2) };

	must(w, a, spread_flow(must(w, a, rss_cmd(q, 1, 0)), group));
	send_to(w, a, &q[1], group);
	expect_by(w, a, q[0], FRAME);
	send_to(w, a, &q[0], group);
	expect_none(w, a);
	assert_int_equal(STAT(w, a, rx_no_buffer), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(frames_are_spread, "RAW-13 RAW-14"),
		STEPPED(spreading_of_ipv6, "RAW-14"),
		STEPPED(rss_objects_that_are_refused, "RAW-5 RAW-13 CMD-11"),
		STEPPED(as_many_rss_objects_as_there_are, "RAW-11 RAW-13 LIM-1"),
		STEPPED(entries_of_qps_that_went, "RAW-15"),
		STEPPED(spread_frames_loop_back, "RAW-9"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
