// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* VLAN tags that ETH QPs strip from what they receive. */
#include "harness/raw.h"

#define TAG_AT		12u
#define TAG		4u		/* bytes, with the type */

static struct skua_cmd strip_cmd(uint32_t qpn, uint8_t strip)
{
	return modify_cmd(qpn, SKUA_QP_ATTR_STRIP_CVLAN, (struct skua_qp_attr){ .strip_cvlan = strip });
}

/* A QP with receives that all frames of the port go to. */
static struct queues catcher(struct world *w, struct node *n, uint8_t strip)
{
	struct queues q = with_receives(n, raw_qp(w, n), 32);

	must(w, n, strip_cmd(q.qpn, strip));
	must(w, n, flow_cmd(q.qpn, SKUA_FLOW_NORMAL));
	return q;
}

/* In the first slot, with this type and tag. */
static void make_tagged(struct node *n, uint16_t type, uint16_t tag, uint32_t len)
{
	uint8_t *p = make_frame(n, group, n->mac, len);

	memcpy(p + TAG_AT, (uint8_t[]){ (uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(tag >> 8), (uint8_t)tag }, TAG);
}

static const uint8_t *slot(struct node *n, const struct skua_cqe *cqe)
{
	return at(n, n->buf + (1 + le32toh(cqe->cookie) % 200) * (uint64_t)SLOT);
}

/* The next CQE is the frame in the first slot of @from, whole. */
static void expect_whole(struct world *w, struct node *n, struct queues q, struct node *from, uint32_t len)
{
	struct skua_cqe *cqe = expect_by(w, n, q, len);

	assert_int_equal(le16toh(cqe->vlan), 0);
	assert_memory_equal(slot(n, cqe), at(from, from->buf), len);
}

/* The same without its tag, which is this. @len counts that. */
static void expect_stripped(struct world *w, struct node *n, struct queues q, struct node *from, uint32_t len,
			    uint16_t tag)
{
	struct skua_cqe *cqe = expect_by(w, n, q, len - TAG);
	const uint8_t *got = slot(n, cqe), *sent = at(from, from->buf);

	assert_int_equal(le16toh(cqe->vlan), tag);
	assert_memory_equal(got, sent, TAG_AT);
	assert_memory_equal(got + TAG_AT, sent + TAG_AT + TAG, len - TAG_AT - TAG);
}

static void tags_are_stripped(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = catcher(w, b, 1);

	for (unsigned int i = 0; i < num_raw_frames; i++) {
		const struct raw_frame *f = &raw_frames[i];

		memcpy(at(a, a->buf), f->bytes, f->len);
		send_from(w, a, &from, f->len);
		if (f->key.headers & SKUA_FLOW_VLAN)
			expect_stripped(w, b, to, a, f->len, be16toh(f->key.vlan));
		else
			expect_whole(w, b, to, a, f->len);
	}
}

/* Any tag of any length; those of other types stay. */
static void tags_and_lengths(void **state)
{
	static const uint16_t tags[] = { 1, 0xffe, 0xe000, 0x1000, 0xffff, 0 };
	static const uint32_t lens[] = { 18, 19, 60, 1518 };
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = catcher(w, b, 1);

	for (unsigned int i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (unsigned int t = 0; t < sizeof(tags) / sizeof(tags[0]); t++) {
			make_tagged(a, 0x8100, tags[t], lens[i]);
			send_from(w, a, &from, lens[i]);
			expect_stripped(w, b, to, a, lens[i], tags[t]);
		}
		make_tagged(a, 0x88a8, 7, lens[i]);
		send_from(w, a, &from, lens[i]);
		expect_whole(w, b, to, a, lens[i]);
	}
	make_tagged(a, 0x8100, 7, 17);
	send_from(w, a, &from, 17);
	expect_whole(w, b, to, a, 17);
}

/* Nobody strips who was not told to, and a QP can be told while it receives. RESET forgets it. */
static void who_strips(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 8), old;

	must(w, b, flow_cmd(to.qpn, SKUA_FLOW_NORMAL));
	make_tagged(a, 0x8100, 7, FRAME);
	for (uint8_t strip = 0; strip < 4; strip++) {
		struct skua_qp_attr *attr = query(w, b, object_cmd(SKUA_CMD_QUERY_QP, to.qpn), sizeof(*attr));

		assert_int_equal(attr->strip_cvlan, strip & 1);
		send_from(w, a, &from, FRAME);
		if (strip & 1)
			expect_stripped(w, b, to, a, FRAME, 7);
		else
			expect_whole(w, b, to, a, FRAME);
		must(w, b, strip_cmd(to.qpn, ~strip & 1));
	}
	must(w, b, strip_cmd(to.qpn, 1));
	old = use_queues(b, to);
	must(w, b, state_cmd(to.qpn, SKUA_QPS_RESET));
	assert_int_equal(((struct skua_qp_attr *)query(w, b, object_cmd(SKUA_CMD_QUERY_QP, to.qpn),
						       sizeof(struct skua_qp_attr)))->strip_cvlan, 0);
	use_queues(b, old);
}

/* A QP that only receives need not be in RTS. */
static void a_receiver_in_rtr(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = raw_qp(w, b);
	struct skua_cmd cmd;

	must(w, b, state_cmd(to.qpn, SKUA_QPS_RESET));
	must(w, b, state_cmd(to.qpn, SKUA_QPS_INIT));
	cmd = strip_cmd(to.qpn, 1);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_STATE);
	cmd.modify_qp.mask |= htole32(SKUA_QP_ATTR_STATE);
	cmd.modify_qp.attr.state = SKUA_QPS_RTR;
	must(w, b, cmd);
	must(w, b, flow_cmd(to.qpn, SKUA_FLOW_NORMAL));
	to = with_receives(b, to, 2);
	make_tagged(a, 0x8100, 7, FRAME);
	send_from(w, a, &from, FRAME);
	expect_stripped(w, b, to, a, FRAME, 7);
	must(w, b, strip_cmd(to.qpn, 0));
	send_from(w, a, &from, FRAME);
	expect_whole(w, b, to, a, FRAME);
}

static void what_is_written_fits_in_the_receive(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = raw_qp(w, b), old = use_queues(b, to);

	post_recv(b, b->buf + SLOT, FRAME - TAG);
	to = use_queues(b, old);
	must(w, b, strip_cmd(to.qpn, 1));
	must(w, b, flow_cmd(to.qpn, SKUA_FLOW_NORMAL));
	make_tagged(a, 0x8100, 7, FRAME + 1);
	send_from(w, a, &from, FRAME + 1);
	make_tagged(a, 0x88a8, 7, FRAME);
	send_from(w, a, &from, FRAME);
	expect_none(w, b);
	assert_int_equal(STAT(w, b, rx_dropped), 2);
	make_tagged(a, 0x8100, 7, FRAME);
	send_from(w, a, &from, FRAME);
	expect_stripped(w, b, to, a, FRAME, 7);
	assert_int_equal(STAT(w, b, rx_bytes), FRAME);
}

/* By hash, checksums, flow and its tag, the frame is the one that came. */
static void the_rest_regards_the_frame_as_it_came(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 2), old;
	struct skua_cmd rss = CMD(SKUA_CMD_CREATE_RSS, .rss = {
		.fields = htole32(SKUA_HASH_MASK), .key = { 0x6d, 0x5a, 0x56, 0xda }, .qpn[0] = htole32(to.qpn) });
	struct skua_cmd flow = flow_cmd(0, SKUA_FLOW_NORMAL);
	const uint8_t ok = SKUA_CQE_L3_CSUM_OK | SKUA_CQE_L4_CSUM_OK | SKUA_CQE_L4_HASH;
	unsigned int f = 0;
	uint32_t hash = 0;

	while (strcmp(raw_frames[f].name, "IPv4, TCP, with a tag"))
		f++;
	flow.flow.rssn = htole32(must(w, b, rss));
	flow.flow.tag = htole32(77);
	flow.flow.value.vlan = flow.flow.mask.vlan = raw_frames[f].key.vlan;
	must(w, b, flow);
	for (uint8_t strip = 0; strip < 2; strip++) {
		struct skua_cqe *cqe;

		must(w, b, strip_cmd(to.qpn, strip));
		memcpy(at(a, a->buf), raw_frames[f].bytes, raw_frames[f].len);
		old = use_queues(a, from);
		post(a, SKUA_WQE_SEND, SKUA_WQE_IP_CSUM, a->buf, raw_frames[f].len, 0, 0, 0);
		from = use_queues(a, old);
		cqe = expect_by(w, b, to, raw_frames[f].len - (strip ? TAG : 0));
		assert_int_equal(cqe->flags & ok, ok);
		assert_int_equal(le32toh(cqe->flow_tag), 77);
		assert_int_equal(le16toh(cqe->vlan), strip ? be16toh(raw_frames[f].key.vlan) : 0);
		assert_int_not_equal(cqe->rss_hash, 0);
		assert_true(!strip || cqe->rss_hash == hash);
		hash = cqe->rss_hash;
	}
}

/* Of what loops back, of a copy, and of what the port takes, each receiver strips for itself. */
static void each_receiver_strips_for_itself(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), back = with_receives(a, raw_qp(w, a), 2);
	struct queues copy = with_receives(b, raw_qp(w, b), 1);
	uint32_t sniffer = must(w, b, flow_cmd(copy.qpn, SKUA_FLOW_SNIFFER));

	must(w, a, mac_flow(back.qpn, group));
	must(w, a, strip_cmd(back.qpn, 1));
	make_tagged(a, 0x8100, 7, FRAME);
	send_from(w, a, &from, FRAME);
	expect_stripped(w, a, back, a, FRAME, 7);
	expect_whole(w, b, copy, a, FRAME);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_FLOW, sniffer));
	eth_queues(w, b);
	post_recv(b, b->buf + SLOT, SLOT);
	must(w, b, strip_cmd(b->qpn, 1));
	send_from(w, a, &from, FRAME);
	expect_stripped(w, a, back, a, FRAME, 7);
	expect_stripped(w, b, (struct queues){ .qpn = b->qpn }, a, FRAME, 7);
}

static void wrong_values(void **state)
{
	static const uint8_t wrong[] = { 2, 0x80, 0xff };
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct queues q = raw_qp(w, n);
	struct skua_cmd cmd;

	for (unsigned int i = 0; i < sizeof(wrong); i++) {
		cmd = strip_cmd(q.qpn, wrong[i]);
		assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
		cmd.modify_qp.mask = 0;
		must(w, n, cmd);
	}
	/* A QP of type RC has no frames. */
	cmd = strip_cmd(n->qpn, 1);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_PARAM);
}

static void without_the_feature_tags_stay(void **state)
{
	struct world *w = world_create_with(false, ~(1ull << SKUA_F_STRIP_CVLAN));
	struct node *a = &w->n[0], *b = &w->n[1];
	struct queues from = raw_qp(w, a), to = with_receives(b, raw_qp(w, b), 1);
	struct skua_cmd cmd = strip_cmd(to.qpn, 1);

	(void)state;
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	cmd.modify_qp.mask = 0;
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	cmd = strip_cmd(to.qpn, 0);
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);
	must(w, b, flow_cmd(to.qpn, SKUA_FLOW_NORMAL));
	make_tagged(a, 0x8100, 7, FRAME);
	send_from(w, a, &from, FRAME);
	expect_whole(w, b, to, a, FRAME);
	world_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(tags_are_stripped, "ETH-18 ETH-19"),
		STEPPED(tags_and_lengths, "ETH-18 ETH-19 ETH-11"),
		STEPPED(who_strips, "ETH-18 QP-6 QPS-6 QPS-7"),
		STEPPED(a_receiver_in_rtr, "ETH-18 QPS-2"),
		STEPPED(what_is_written_fits_in_the_receive, "ETH-19 ETH-10"),
		STEPPED(the_rest_regards_the_frame_as_it_came, "ETH-19 ETH-12 RAW-14 RAW-16"),
		STEPPED(each_receiver_strips_for_itself, "ETH-18 RAW-8 RAW-9"),
		STEPPED(wrong_values, "QPS-2 QPS-4"),
		STEPPED(without_the_feature_tags_stay, "FEA-2"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
