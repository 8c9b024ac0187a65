// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets that arrive at a QP from its peer, requests and responses, in any order and number,
 * while it works: whole trains of packets as a wire gives them, near the PSNs that are expected.
 *
 * Each is also written as bytes and as a block of a capture, which have to be well formed, and the
 * bytes have to say the same again. Some arrive as bytes, as from a socket: whole, cut, or with bits
 * changed, with the ICRC of before or with one that fits. So do frames of selective repeat.
 */

#include "fuzz/fuzz.h"
#include "fuzz/traffic.h"
#include "link/pcapng.h"
#include "link/port.h"
#include "packet/icrc.h"
#include "packet/packet.h"
#include "roce/repeat.h"
#include "roce/rx.h"

#define TRAIN	NUM_TRAFFIC_VERBS
#define REPEAT	0xf0		/* kinds from here on are frames of selective repeat */

static uint8_t payload[SEG_MAX_BYTES];

static void find_qp(const void *info, void *arg)
{
	const struct skua_qp_info *qp = info;
	struct skua_qp_info *want = arg;

	if (qp->qpn == want->qpn)
		*want = *qp;
}

/* The same packets as bytes: their headers say how long they are, their blocks too. */
static void check_bytes(const struct train *t)
{
	uint8_t block[PCAPNG_EPB_HEAD + ROCE_MAX_PACKET + PCAPNG_EPB_TAIL];
	uint8_t *p = block + PCAPNG_EPB_HEAD;
	uint32_t word;

	for (uint32_t i = 0; i < t->npkts; i++) {
		uint32_t len = (uint32_t)roce_packet_build(p, t, i), block_len;
		struct roce_packet pkt;

		CHECK(roce_packet_open(&pkt, p, len));
		CHECK(roce_packet_parse(&pkt) == ROCE_OK);
		CHECK(pkt.train.psn == psn_add(t->psn, i) && pkt.train.dest_qpn == t->dest_qpn);
		CHECK(len <= ROCE_MAX_PACKET && p[14] == 0x45);
		CHECK((p[16] << 8 | p[17]) == (int)len - 14);
		block_len = (uint32_t)pcapng_packet(block, true, i, len, len, i);
		CHECK(block_len <= sizeof(block) && block_len % 4 == 0);
		memcpy(&word, block + 4, 4);
		CHECK(word == block_len);
		memcpy(&word, block + block_len - 4, 4);
		CHECK(word == block_len);
	}
}

/* In two runs of memory: @len bytes from @offset on. */
static void set_payload(struct seglist *segs, uint32_t offset, uint32_t len)
{
	uint32_t first = len / 2;

	offset %= sizeof(payload) - len + 1;
	*segs = (struct seglist){ .n = 2, .bytes = len, .seg = {
		{ payload + offset, first }, { payload + offset + first, len - first } } };
}

/* Kinds of message that are one packet. */
static bool is_single(enum train_op op)
{
	return op == TRAIN_READ_REQ || op == TRAIN_ACK || op >= TRAIN_CMP_SWAP;
}

static enum transport transport_of(uint8_t type)
{
	return type == SKUA_QPT_UC ? TRANSPORT_UC :
	       type == SKUA_QPT_XRC_INI || type == SKUA_QPT_XRC_TGT ? TRANSPORT_XRC :
	       type == SKUA_QPT_UD || type == SKUA_QPT_GSI ? TRANSPORT_UD : TRANSPORT_RC;
}

/* The kinds that a transport has. */
static enum train_op op_of(enum transport transport, uint8_t b)
{
	static const enum train_op uc[] = {
		TRAIN_SEND, TRAIN_SEND_IMM, TRAIN_WRITE, TRAIN_WRITE_IMM,
	};

	switch (transport) {
	case TRANSPORT_RC:
		return b % TRAIN_CNP;
	case TRANSPORT_XRC:	/* neither FLUSH nor what stands behind it */
		return b % TRAIN_FLUSH;
	case TRANSPORT_UC:
		return uc[b % 4];
	case TRANSPORT_CNP:
		return TRAIN_CNP;
	default:
		return b % 2 ? TRAIN_SEND_IMM : TRAIN_SEND;
	}
}

/* The same packets, one by one, after what @p says was done to them. */
static void send_bytes(struct skua_dev *dev, const struct train *t, const struct step *p)
{
	uint8_t buf[ROCE_MAX_PACKET];
	struct seglist frame;

	for (uint32_t i = 0; i < t->npkts; i++) {
		uint32_t len = (uint32_t)roce_packet_build(buf, t, i), icrc;

		for (int flip = 20; flip < 29; flip += 3)
			buf[(p->bytes[flip + 1] | p->bytes[flip + 2] << 8) % len] ^= p->bytes[flip];
		if (p->a & 16) {
			icrc = htole32(roce_icrc(buf + 14, len - 18));
			memcpy(buf + len - 4, &icrc, 4);
		}
		if (p->bytes[29] < len - 14)
			len -= p->bytes[29];
		frame.n = 1;
		frame.bytes = len;
		/* Just as long as it is, so that nothing behind it is read. */
		frame.seg[0] = (struct seg){ malloc(len), len };
		memcpy(frame.seg[0].p, buf, len);
		skua_dev_rx_frame(dev, &frame);
		free(frame.seg[0].p);
	}
}

/* The same of @p as for a train; v: the map. */
static void send_repeat(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1], *peer = &t->side[!(p->a & 1)];
	struct skua_qp_info qp = { .qpn = s->qpn };
	struct repeat_frame f = {
		.type = p->b & 1 ? REPEAT_MISSING : REPEAT_HELLO, .answer = p->b & 2,
		.dest_qpn = s->qpn, .path = { .vlan = SKUA_VLAN_NONE },
	}, out;
	uint8_t buf[REPEAT_FRAME], *bytes;
	struct seglist frame = { .n = 1 };
	uint32_t len;

	skua_dev_for_each_qp(s->n->dev, &(struct skua_walk){ 0 }, find_qp, &qp);
	f.psn = psn_add(qp.una_psn, p->n[0] & PSN_MASK);
	for (size_t i = 0; i < sizeof(f.held); i += 16)
		memcpy(f.held + i, p->v, 16);
	memcpy(f.path.smac, peer->n->mac, 6);
	memcpy(f.path.dmac, s->n->mac, 6);
	memcpy(f.path.sgid, (p->a & 2 ? s : peer)->n->gid, 16);
	memcpy(f.path.dgid, s->n->gid, 16);
	len = (uint32_t)repeat_build(buf, &f);
	CHECK(len <= sizeof(buf) && repeat_parse(&out, buf, len));
	CHECK(out.type == f.type && (f.type == REPEAT_HELLO || out.psn == f.psn));
	for (int flip = 20; flip < 29; flip += 3)
		buf[(p->bytes[flip + 1] | p->bytes[flip + 2] << 8) % len] ^= p->bytes[flip];
	if (p->a & 16)
		repeat_seal(buf, len);
	if (p->bytes[29] < len - 14)
		len -= p->bytes[29];
	bytes = malloc(len);
	memcpy(bytes, buf, len);
	frame.bytes = len;
	frame.seg[0] = (struct seg){ bytes, len };
	skua_dev_rx_frame(s->n->dev, &frame);
	free(bytes);
	if (!(p->a & 4))
		work(t);
}

/*
 * @a: to which side, and from whom, and as bytes; @b: kind; @c: its place, and PMTU; n[0]: distance from the PSN
 * that is expected; n[1]: bytes; n[2]: key; v: address, operands; bytes: syndrome, immediate, MSN,
 * a mark, another transport, and to the group.
 */
static void send_train(struct traffic *t, const struct step *p)
{
	struct side *s = &t->side[p->a & 1], *peer = &t->side[!(p->a & 1)];
	struct skua_qp_info qp = { .qpn = s->qpn };
	enum key key = p->n[2] % NUM_KEYS;
	uint32_t pmtu = 128u << (p->c >> 5 ? 1 + (p->c >> 5) % 5 : s->mtu);
	static const enum transport others[] = { TRANSPORT_RC, TRANSPORT_UC, TRANSPORT_UD,
						 TRANSPORT_CNP, TRANSPORT_XRC };
	enum transport transport = p->bytes[30] & 0x80 ? others[p->bytes[30] % 5] :
				   transport_of(s->type);
	bool ud = transport == TRANSPORT_UD, single = ud || is_single(op_of(transport, p->b));
	uint32_t bytes = p->n[1] % ((ud ? 1 : 8) * pmtu + 1);
	enum train_op op = op_of(transport, p->b);
	struct roce_path path = { .vlan = SKUA_VLAN_NONE, .hop_limit = 64, .sport = 0xc000,
				  .traffic_class = p->bytes[17] & 0x80 ? ECN_CE : 0 };
	struct seglist segs;
	struct train tr = {
		.op = op, .transport = transport, .qkey = QKEY ^ (p->n[2] >> 16 & 1),
		.first = !(p->c & 1) || single, .last = !(p->c & 2) || single,
		.ack_req = !(p->c & 4), .solicited = p->c & 8, .syndrome = p->bytes[0],
		.dest_qpn = s->qpn, .src_qpn = peer->qpn, .pmtu = pmtu,
		.npkts = single || !bytes ? 1 : (bytes - 1) / pmtu + 1,
		.rkey = s->key[key] ^ (p->n[2] >> 24), .raddr = base_of(s, key) + p->v[0],
		.swap_add = p->v[1], .compare = p->v[0], .swap_add_mask = p->v[1], .compare_mask = p->v[0], .path = &path,
	};

	if (!s->mtu)
		return;		/* an ETH QP: no packet is for it */
	skua_dev_for_each_qp(s->n->dev, &(struct skua_walk){ 0 }, find_qp, &qp);
	tr.psn = psn_add(train_is_response(op) ? qp.una_psn : qp.rq_psn, p->n[0] & PSN_MASK);
	if (transport == TRANSPORT_XRC)
		tr.srqn = s->srqn ^ (p->n[2] >> 16 & 1);
	memcpy(&tr.msn, p->bytes + 4, 4);
	memcpy(&tr.msg_len, p->bytes + 8, 4);
	if (!(p->c & 16) && op != TRAIN_READ_REQ)
		tr.msg_len = bytes;
	memcpy(&tr.imm, p->bytes + 12, 4);
	if (op == TRAIN_SEND_INV)
		tr.imm = s->key[key];
	set_payload(&segs, p->bytes[16], bytes);
	if ((!is_single(op) || op == TRAIN_ATOMIC_WRITE) && bytes && bytes <= pmtu * tr.npkts)
		tr.payload = &segs;
	tr.flush = p->v[1] & 0x3f;
	memcpy(path.sgid, (p->a & 2 ? s : peer)->n->gid, 16);
	memcpy(path.dgid, s->n->gid, 16);
	memcpy(path.dmac, s->n->mac, 6);
	if (p->bytes[31] & 1) {
		memcpy(path.dgid, group, 16);
		memcpy(path.dmac, ud_to_group(group).av.dmac, 6);
		tr.dest_qpn = p->bytes[31] & 2 ? s->qpn : 0xffffff;
	}
	check_bytes(&tr);
	if (p->a & 8)
		send_bytes(s->n->dev, &tr, p);
	else
		roce_rx_train(s->n->dev, &tr);
	if (!(p->a & 4))
		work(t);
}

/* Half of all steps are packets. */
static void fuzz_run(const struct step *steps, unsigned int n)
{
	struct traffic t;

	traffic_create(&t, &steps[0]);
	for (unsigned int i = 1; i < n; i++) {
		race_step();
		if (steps[i].verb % (2 * TRAIN) < TRAIN)
			traffic_play(&t, &steps[i]);
		else if (steps[i].b >= REPEAT)
			send_repeat(&t, &steps[i]);
		else
			send_train(&t, &steps[i]);
	}
	traffic_destroy(&t);
}

#define CNP	.bytes = { [30] = 0x85 }
#define ALL	SGE(K_ALL, 64, 5000)
/* The peer is not heard; so what arrives is the steps' own. */
#define ALONE	{ .verb = LINK, .a = 1 }
#define PACKET(op_, ...)	{ .verb = TRAIN, .b = op_, __VA_ARGS__ }

static void fuzz_seeds(void)
{
	FUZZ_SEED("requests", CONFIG(), ALONE, RQE(0, ALL), PACKET(TRAIN_SEND, .n[1] = 3000),
		  PACKET(TRAIN_SEND_IMM, .n[1] = 100), PACKET(TRAIN_SEND_INV, .n[2] = K_FAST),
		  PACKET(TRAIN_WRITE, .n[1] = 5000), PACKET(TRAIN_WRITE_IMM, .n[1] = 1),
		  PACKET(TRAIN_READ_REQ, .bytes = { [9] = 8 }),
		  PACKET(TRAIN_FETCH_ADD, .n[2] = K_EXTRA, .v[1] = 1),
		  PACKET(TRAIN_CMP_SWAP, .n[2] = K_EXTRA),
		  PACKET(TRAIN_MASKED_FETCH_ADD, .n[2] = K_EXTRA, .v[1] = 1),
		  PACKET(TRAIN_MASKED_CMP_SWAP, .n[2] = K_EXTRA),
		  PACKET(TRAIN_ATOMIC_WRITE, .n = { 0, 8, K_EXTRA }),
		  PACKET(TRAIN_FLUSH, .n[2] = K_EXTRA, .v[1] = SKUA_FLUSH_GLOBAL),
		  PACKET(TRAIN_FLUSH, .n[2] = K_EXTRA, .v[1] = SKUA_FLUSH_GLOBAL | SKUA_FLUSH_MR),
		  { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("pieces", CONFIG(), ALONE, RQE(0, ALL), PACKET(TRAIN_SEND, .c = 2, .n[1] = 2048),
		  PACKET(TRAIN_SEND, .c = 3, .n[1] = 1024), PACKET(TRAIN_SEND, .c = 1, .n[1] = 7),
		  PACKET(TRAIN_WRITE, .c = 18, .n[1] = 1024, .bytes = { [9] = 5 }),
		  PACKET(TRAIN_WRITE, .c = 1, .n[1] = 256), PACKET(TRAIN_SEND, .c = 2, .n[1] = 1024),
		  PACKET(TRAIN_WRITE, .c = 1, .n[1] = 1));
	FUZZ_SEED("again", CONFIG(), ALONE, RQE(0, ALL), PACKET(TRAIN_SEND, .n[1] = 3000),
		  PACKET(TRAIN_SEND, .n = { 0xfffffe, 3000 }), PACKET(TRAIN_SEND, .n = { 1, 10 }),
		  PACKET(TRAIN_READ_REQ, .bytes = { 0, [8] = 16 }),
		  PACKET(TRAIN_READ_REQ, .n[0] = 0xffffff, .bytes = { 0, [8] = 16 }),
		  PACKET(TRAIN_FETCH_ADD, .n[2] = K_EXTRA, .v[1] = 1),
		  PACKET(TRAIN_FETCH_ADD, .n = { 0xffffff, 0, K_EXTRA }),
		  PACKET(TRAIN_ATOMIC_WRITE, .n = { 0, 8, K_EXTRA }),
		  PACKET(TRAIN_ATOMIC_WRITE, .n = { 0xffffff, 8, K_EXTRA }));
	FUZZ_SEED("responses", CONFIG(), ALONE, WQE(SKUA_WQE_READ, 1, 1, ALL), { .verb = WORK },
		  PACKET(TRAIN_READ_RESP, .c = 2, .n[1] = 2048, .bytes = { AETH_ACK }),
		  PACKET(TRAIN_READ_RESP, .c = 1, .n[1] = 2952, .bytes = { AETH_ACK }),
		  WQE(SKUA_WQE_FETCH_ADD, 1, 1, SGE(K_ALL, 8, 8), .n[2] = K_EXTRA), { .verb = WORK },
		  PACKET(TRAIN_ATOMIC_RESP, .bytes = { AETH_ACK }),
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL, .n[1] = 64), { .verb = WORK },
		  PACKET(TRAIN_ACK, .n[0] = 2, .bytes = { AETH_ACK }),
		  PACKET(TRAIN_ACK, .bytes = { AETH_NAK_SEQ }),
		  PACKET(TRAIN_ACK, .bytes = { AETH_RNR | 3 }), { .verb = PASS, .n[0] = 5000 },
		  PACKET(TRAIN_ACK, .n[0] = 1, .bytes = { AETH_NAK_ACCESS }));
	FUZZ_SEED("bytes", CONFIG(), ALONE, RQE(0, ALL), PACKET(TRAIN_SEND, .a = 8, .n[1] = 3000),
		  PACKET(TRAIN_WRITE, .a = 8, .n[1] = 5000), PACKET(TRAIN_ACK, .a = 8),
		  PACKET(TRAIN_READ_REQ, .a = 24, .bytes = { [9] = 8, [20] = 1, [21] = 50 }),
		  PACKET(TRAIN_SEND, .a = 24, .n[1] = 64, .bytes = { [20] = 255, [21] = 43 }),
		  PACKET(TRAIN_WRITE, .a = 8, .n[1] = 9, .bytes = { [29] = 20 }));
	FUZZ_SEED("uc", CONFIG(.a = 0x40), ALONE, RQE(0, ALL), PACKET(TRAIN_SEND, .n[1] = 3000),
		  PACKET(TRAIN_SEND, .c = 2, .n[1] = 2048), PACKET(TRAIN_SEND, .c = 1, .n = { 1, 9 }),
		  PACKET(3, .n[1] = 5000), PACKET(2, .c = 2, .n[1] = 1024), PACKET(1, .n[1] = 77),
		  PACKET(2, .n = { 0, 9, 0x1000000 }), PACKET(1, .a = 8, .n[1] = 3000),
		  PACKET(0, .bytes = { [30] = 0x84 }), { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("ud", CONFIG(.a = 0x80), ALONE, RQE(0, ALL), PACKET(0, .n[1] = 3000),
		  PACKET(1, .a = 8, .n[1] = 4096), PACKET(0, .n[2] = 0x10000),
		  PACKET(0, .n[1] = 99, .bytes = { [31] = 1 }), PACKET(0, .a = 8, .bytes = { [31] = 1 }),
		  PACKET(0, .a = 8, .bytes = { [31] = 3 }), PACKET(5, .bytes = { [30] = 0x82 }),
		  { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("srq", CONFIG(.n[0] = SRQ), ALONE, RQE(0, ALL), PACKET(TRAIN_SEND, .n[1] = 3000),
		  PACKET(TRAIN_SEND, .c = 2, .n[1] = 2048), PACKET(TRAIN_SEND, .c = 1, .n[1] = 7),
		  PACKET(TRAIN_WRITE_IMM, .n[1] = 1), { .verb = SHARED, .b = 1, .n[0] = 4 }, PACKET(TRAIN_SEND_IMM, .n[1] = 9),
		  PACKET(TRAIN_SEND, .c = 2, .n[1] = 1024), { .verb = MODIFY, .c = 1 }, { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("xrc", CONFIG(.n[0] = XRC), ALONE, RQE(1, ALL), PACKET(TRAIN_SEND, .a = 1, .n[1] = 3000),
		  PACKET(TRAIN_WRITE, .a = 1, .n[1] = 5000), PACKET(TRAIN_READ_REQ, .a = 1, .bytes = { [9] = 8 }),
		  PACKET(TRAIN_WRITE_IMM, .a = 9, .n[1] = 9), PACKET(TRAIN_SEND, .a = 1, .n = { 0, 64, 0x10000 }),
		  PACKET(TRAIN_FETCH_ADD, .a = 1, .n[2] = K_EXTRA, .v[1] = 1), WQE(SKUA_WQE_READ, 1, 1, ALL), { .verb = WORK },
		  PACKET(TRAIN_READ_RESP, .n[1] = 5000, .bytes = { AETH_ACK }), { .verb = POLL, .a = 1, .n[0] = 99 });
	/* Pages come, go, and are refused. */
	FUZZ_SEED("on demand", CONFIG(), ALONE, PACKET(TRAIN_WRITE, .n = { 0, 5000, K_DEMAND }), BRING(0), RESUME(0),
		  PACKET(TRAIN_WRITE, .n = { 0, 5000, K_DEMAND }), PACKET(TRAIN_READ_REQ, .n[2] = K_DEMAND, .bytes = { [9] = 32 }),
		  DROP(0), PACKET(TRAIN_READ_REQ, .n = { 0xffffff, 0, K_DEMAND }, .bytes = { [9] = 32 }), BRING(0), RESUME(0),
		  DROP(0), PACKET(TRAIN_FETCH_ADD, .n[2] = K_DEMAND, .v[1] = 1), { .verb = FAULT, .b = SKUA_PAGE_FAULT_FAIL });
	FUZZ_SEED("gsi", CONFIG(.a = 0xc0), RQE(0, ALL), PACKET(0, .n[1] = 256));
	FUZZ_SEED("repeat", CONFIG(), ALONE, RQE(0, ALL), PACKET(REPEAT, .a = 0),
		  PACKET(TRAIN_SEND, .n = { 1, 1000 }), PACKET(TRAIN_WRITE, .n = { 3, 8 }),
		  PACKET(TRAIN_SEND, .n = { 0, 8 }), PACKET(TRAIN_WRITE, .n = { 0, 8 }),
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL), { .verb = WORK },
		  PACKET(REPEAT | 1, .v = { 2 }), PACKET(REPEAT | 1, .a = 16, .n[0] = 1, .v = { 1 }),
		  WQE(SKUA_WQE_READ, 1, 1, ALL), { .verb = WORK },
		  PACKET(TRAIN_READ_RESP, .c = 1, .n = { 1, 1000 }, .bytes = { AETH_ACK }),
		  PACKET(TRAIN_READ_RESP, .n = { 0, 1024 }, .bytes = { AETH_ACK }),
		  { .verb = PASS, .n[0] = 5000 });
	FUZZ_SEED("congestion", CONFIG(), RQE(0, ALL), PACKET(0, CNP),
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL), WQE(SKUA_WQE_READ, 1, 1, ALL), { .verb = WORK },
		  PACKET(0, .a = 8, CNP), { .verb = PASS, .n[0] = 60000 }, PACKET(0, .a = 1, CNP),
		  PACKET(TRAIN_WRITE, .n[1] = 5000, .bytes = { [17] = 0x80 }),
		  PACKET(TRAIN_WRITE, .a = 8, .n[1] = 3000, .bytes = { [17] = 0x80 }),
		  { .verb = PASS, .n[0] = 60000 }, { .verb = POLL, .n[0] = 9 });
	FUZZ_SEED("races", CONFIG(), ALONE, RQE(0, ALL), { .verb = RACE, .b = RACE_SET, .c = 15, .v[0] = UINT64_MAX },
		  PACKET(TRAIN_SEND, .n[1] = 3000), PACKET(TRAIN_SEND_IMM, .n[1] = 100), PACKET(TRAIN_WRITE_IMM, .n[1] = 1),
		  { .verb = POLL, .n[0] = 99 });
	FUZZ_SEED("mtus", CONFIG(.b = 2, .c = 3), WQE(SKUA_WQE_READ, 1, 1, ALL), { .verb = WORK },
		  WQE(SKUA_WQE_WRITE, 1, 1, ALL), { .verb = WORK },
		  PACKET(TRAIN_WRITE, .c = 0x40, .n[1] = 600), { .verb = POLL, .n[0] = 9 });
}
