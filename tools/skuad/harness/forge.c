// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/forge.h"

#include "base/bytes.h"
#include "packet/icrc.h"
#include "packet/packet.h"
#include "packet/wire.h"
#include "roce/rc.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static uint8_t noise[FORGE_ROOM];	/* for payloads */

uint64_t forge_random(struct scene *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random * 0x2545f4914f6cdd1dull >> 16;
}

static uint32_t below(struct forge *f, uint32_t n)
{
	return (uint32_t)(forge_random(f->s) % n);
}

/* Not 0. */
static uint8_t other(struct forge *f)
{
	return (uint8_t)(1 + below(f, 255));
}

/* @len bytes of payload. */
static void load(struct forge *f, uint32_t len)
{
	for (size_t i = 0; !noise[0] && i < sizeof(noise); i++)
		noise[sizeof(noise) - 1 - i] = (uint8_t)(1 + below(f, 255));
	f->payload.n = 1;
	f->payload.bytes = len;
	f->payload.seg[0] = (struct seg){ noise + below(f, FORGE_ROOM - len + 1), len };
	f->t.payload = len ? &f->payload : NULL;
}

/* What is of use to its receiver, if it were not for what is yet to come. */
static void begin_op(struct forge *f, enum target target, enum train_op op)
{
	struct scene *s = f->s;
	const struct skua_qp *qp = s->qp[target];
	static const enum transport transports[NUM_TARGETS] = {
		[UC] = TRANSPORT_UC, [UD] = TRANSPORT_UD, [XRC] = TRANSPORT_XRC };
	uint32_t len = below(f, 8) ? below(f, 200) : FORGE_PMTU;
	bool response = train_is_response(op);

	f->host = false;
	f->answered = false;
	f->path = s->path[target];
	f->t = (struct train){
		.op = op, .transport = transports[target], .first = true, .last = true, .npkts = 1,
		.pmtu = FORGE_PMTU, .dest_qpn = qp->number, .src_qpn = 0x777, .qkey = QKEY,
		.psn = response ? rc_of(qp)->req.oldest_unacked_psn : qp->epsn, .ack_req = below(f, 2),
		.solicited = below(f, 2), .syndrome = AETH_ACK, .imm = (uint32_t)forge_random(s),
		.rkey = s->victim->key, .raddr = s->victim->buf + 8 * below(f, 1000), .msg_len = len,
		.swap_add = forge_random(s), .compare = forge_random(s), .swap_add_mask = forge_random(s),
		.compare_mask = forge_random(s), .path = &f->path,
	};
	if (target == XRC)
		f->t.srqn = s->srqn;		/* in the place of the Q_Key */
	if (op == TRAIN_SEND_INV)
		f->t.imm = s->victim->key;
	f->t.flush = SKUA_FLUSH_GLOBAL;
	if (op == TRAIN_ATOMIC_WRITE)
		f->t.msg_len = len = 8;
	if (op == TRAIN_ATOMIC_WRITE || (op != TRAIN_READ_REQ && op != TRAIN_ACK && op < TRAIN_CMP_SWAP))
		load(f, len);
}

static void begin_request(struct forge *f, enum target target)
{
	static const enum train_op rc[] = { TRAIN_SEND, TRAIN_SEND_IMM, TRAIN_SEND_INV, TRAIN_WRITE,
		TRAIN_WRITE_IMM, TRAIN_READ_REQ, TRAIN_CMP_SWAP, TRAIN_FETCH_ADD, TRAIN_FLUSH, TRAIN_ATOMIC_WRITE,
		TRAIN_MASKED_CMP_SWAP, TRAIN_MASKED_FETCH_ADD };
	const uint32_t not_xrc = 4;	/* at the end of it */
	static const enum train_op uc[] = { TRAIN_SEND, TRAIN_SEND_IMM, TRAIN_WRITE, TRAIN_WRITE_IMM };

	if (target == UD)
		begin_op(f, target, uc[below(f, 2)]);
	else if (target == UC)
		begin_op(f, target, uc[below(f, ARRAY_SIZE(uc))]);
	else
		begin_op(f, target, rc[below(f, ARRAY_SIZE(rc) - (target == XRC ? not_xrc : 0))]);
}

static void begin_response(struct forge *f, enum target target)
{
	static const enum train_op ops[] = { TRAIN_ACK, TRAIN_READ_RESP, TRAIN_ATOMIC_RESP };

	begin_op(f, target, ops[below(f, ARRAY_SIZE(ops))]);
}

static void begin(struct forge *f, enum target target)
{
	if (target != UC && target != UD && target != XRC && !below(f, 4))
		begin_response(f, target);
	else
		begin_request(f, target);
}

static enum target any_pair(struct forge *f)
{
	return below(f, NUM_PAIRS);
}

static enum target any_rc(struct forge *f)
{
	return below(f, 2) ? RC_IPV4 : RC_IPV6;
}

/* A responder of requests that are acknowledged. */
static enum target any_responder(struct forge *f)
{
	return below(f, 3) ? any_rc(f) : XRC;
}

static bool is_ipv4(const struct forge *f)
{
	return gid_is_ipv4(f->path.sgid);
}

static void build(struct forge *f)
{
	f->len = (uint32_t)roce_packet_build(f->frame, &f->t, 0);
	f->ip = f->frame + (f->path.vlan == SKUA_VLAN_NONE ? 14 : 18);
	f->udp = f->ip + (is_ipv4(f) ? IPV4_LEN : IPV6_LEN);
	f->bth = f->udp + UDP_LEN;
}

static void seal_ipv4(struct forge *f)
{
	uint32_t sum = 0;

	put16(f->ip + 10, 0);
	for (int i = 0; i < IPV4_LEN; i += 2)
		sum += (uint32_t)(f->ip[i] << 8 | f->ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(f->ip + 10, ~(sum + (sum >> 16)));
}

/* Checksums that fit what was changed. */
static void seal(struct forge *f)
{
	uint32_t icrc;

	if (is_ipv4(f))
		seal_ipv4(f);
	icrc = htole32(roce_icrc(f->ip, (size_t)(f->frame + f->len - ROCE_ICRC_LEN - f->ip)));
	memcpy(f->frame + f->len - ROCE_ICRC_LEN, &icrc, ROCE_ICRC_LEN);
}

/* @bytes between BTH and ICRC, as all lengths then say. */
static void resize(struct forge *f, uint32_t bytes)
{
	uint32_t udp_len = UDP_LEN + BTH_LEN + bytes + ROCE_ICRC_LEN;

	f->len = (uint32_t)(f->udp - f->frame) + udp_len;
	put16(f->udp + 4, udp_len);
	if (is_ipv4(f))
		put16(f->ip + 2, IPV4_LEN + udp_len);
	else
		put16(f->ip + 4, udp_len);
	seal(f);
}

static uint32_t behind_bth(const struct forge *f)
{
	return (uint32_t)(f->frame + f->len - ROCE_ICRC_LEN - f->bth) - BTH_LEN;
}

/* Malformed */

static void corrupt(struct forge *f)
{
	uint32_t i;

	begin(f, any_pair(f));
	build(f);
	do
		i = below(f, (uint32_t)(f->frame + f->len - f->bth));
	while (i == 4);			/* which the ICRC does not cover */
	f->bth[i] ^= other(f);
}

static void corrupt_ip_checksum(struct forge *f)
{
	begin(f, RC_IPV4);
	build(f);
	f->ip[11] ^= other(f);
}

static void other_version(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	f->bth[1] ^= (uint8_t)(1 + below(f, 15));
	seal(f);
}

static void unknown_opcode(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	do
		f->bth[0] = (uint8_t)forge_random(f->s);
	while (roce_opcodes[f->bth[0]].known);
	seal(f);
}

static void other_pkey(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	f->bth[2 + below(f, 2)] ^= other(f);
	seal(f);
}

/* Somewhere behind the UDP header: of IP and UDP all is right but what is there. */
static void cut(struct forge *f)
{
	uint32_t keep;

	begin(f, any_pair(f));
	build(f);
	keep = (uint32_t)(f->bth - f->frame);
	f->len = keep + below(f, f->len - keep);
}

static void cut_in_headers(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	f->len = 14 + below(f, (uint32_t)(f->bth - f->frame) - 14);
	f->host = true;
}

static void other_udp_length(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	f->udp[4 + below(f, 2)] ^= other(f);
	seal(f);
}

static void other_ip_length(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	f->ip[(is_ipv4(f) ? 2 : 4) + below(f, 2)] ^= other(f);
	seal(f);
}

/* No room for the headers of its opcode. */
static void headers_missing(struct forge *f)
{
	begin(f, below(f, 2) ? UD : any_responder(f));
	if (f->t.op == TRAIN_SEND && f->t.transport == TRANSPORT_RC)
		f->t.op = TRAIN_WRITE;
	build(f);
	resize(f, 4 * below(f, roce_opcodes[f->bth[0]].ext_len / 4));
}

/* Less than a BTH and an ICRC. */
static void bth_missing(struct forge *f)
{
	uint32_t udp_len = UDP_LEN + below(f, BTH_LEN + ROCE_ICRC_LEN);

	begin(f, any_pair(f));
	build(f);
	f->len = (uint32_t)(f->udp - f->frame) + udp_len;
	put16(f->udp + 4, udp_len);
	put16(f->ip + (is_ipv4(f) ? 2 : 4), udp_len + (is_ipv4(f) ? IPV4_LEN : 0));
	if (is_ipv4(f))
		seal_ipv4(f);
}

static void not_words(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	resize(f, behind_bth(f) + 1 + below(f, 3));
}

static void more_pad_than_payload(struct forge *f)
{
	do
		begin(f, any_pair(f));
	while (!f->t.payload);
	load(f, 0);
	build(f);
	f->bth[1] |= (uint8_t)((1 + below(f, 3)) << BTH_PAD_SHIFT);
	seal(f);
}

static void payload_of_none(struct forge *f)
{
	static const enum train_op ops[] = { TRAIN_READ_REQ, TRAIN_CMP_SWAP, TRAIN_FETCH_ADD, TRAIN_ACK,
					     TRAIN_ATOMIC_RESP, TRAIN_FLUSH, TRAIN_MASKED_CMP_SWAP,
					     TRAIN_MASKED_FETCH_ADD };

	begin_op(f, any_rc(f), ops[below(f, ARRAY_SIZE(ops))]);
	build(f);
	resize(f, behind_bth(f) + 4 * (1 + below(f, 50)));
}

static void over_the_mtu(struct forge *f)
{
	begin_op(f, any_pair(f), TRAIN_SEND);
	f->t.pmtu = 4096;
	load(f, 1500 + below(f, 4096 - 1500));
	build(f);
}

/* For somebody else */

static void other_destination(struct forge *f)
{
	begin(f, any_pair(f));
	f->path.dgid[15 - below(f, 4)] ^= other(f);
	if (!memcmp(f->path.dgid, f->s->second_address, 16))
		f->path.dgid[15]++;
	build(f);
	f->host = true;
}

static void other_dmac(struct forge *f)
{
	begin(f, any_pair(f));
	f->path.dmac[1 + below(f, 5)] ^= other(f);
	build(f);
	f->host = true;
}

static void to_all(struct forge *f)
{
	begin(f, any_pair(f));
	memset(f->path.dmac, 0xff, 6);
	build(f);
	f->host = true;
}

static void other_vlan(struct forge *f)
{
	begin(f, any_pair(f));
	f->path.vlan = (uint16_t)(1 + below(f, 4094));
	build(f);
	f->host = true;
}

static void other_port(struct forge *f)
{
	begin(f, any_pair(f));
	build(f);
	f->udp[2 + below(f, 2)] ^= other(f);
	seal(f);
	f->host = true;
}

static void fragment(struct forge *f)
{
	begin(f, RC_IPV4);
	build(f);
	put16(f->ip + 6, below(f, 2) ? 0x2000 : 1 + below(f, 0x1fff));
	seal(f);
	f->host = true;
}

static void ip_options(struct forge *f)
{
	begin(f, RC_IPV4);
	build(f);
	f->ip[0] = (uint8_t)(0x46 + below(f, 10));
	f->host = true;
}

static void ipv6_extension(struct forge *f)
{
	static const uint8_t next[] = { 0, 43, 44, 51, 60, 135 };

	begin(f, RC_IPV6);
	build(f);
	f->ip[6] = next[below(f, ARRAY_SIZE(next))];
	seal(f);
	f->host = true;
}

/* An IPv6 packet that seems to come from the peer's IPv4 address. */
static void ipv4_address_in_ipv6(struct forge *f)
{
	begin(f, RC_IPV6);
	build(f);
	f->t.dest_qpn = f->s->qp[RC_IPV4]->number;
	memcpy(f->ip + 8, f->s->peer->gid, 16);
	memcpy(f->ip + 24, f->s->victim->gid, 16);
	put16(f->bth + 6, f->t.dest_qpn);
	f->bth[5] = (uint8_t)(f->t.dest_qpn >> 16);
	seal(f);
	f->host = true;
}

static void other_source(struct forge *f)
{
	begin(f, below(f, 3) ? any_responder(f) : UC);
	f->path.sgid[15 - below(f, 4)] ^= other(f);
	build(f);
}

/* Of another QP's peer, as it were: another address of the device. */
static void to_second_address(struct forge *f)
{
	begin(f, below(f, 2) ? RC_IPV4 : UC);
	memcpy(f->path.dgid, f->s->second_address, 16);
	build(f);
}

static void no_such_qp(struct forge *f)
{
	begin(f, any_pair(f));
	do
		f->t.dest_qpn = below(f, 64) ? (uint32_t)forge_random(f->s) & 0xffffff : below(f, 2);
	while (numtab_get(&f->s->victim->dev->qps, f->t.dest_qpn));
	build(f);
}

static void begin_cnp(struct forge *f, enum target target)
{
	begin_op(f, target, TRAIN_CNP);
	f->t.transport = TRANSPORT_CNP;
}

static void cnp_for_datagrams(struct forge *f)
{
	begin_cnp(f, UD);
	build(f);
}

static void cnp_from_elsewhere(struct forge *f)
{
	begin_cnp(f, below(f, 3) ? any_responder(f) : UC);
	f->path.sgid[15 - below(f, 4)] ^= other(f);
	build(f);
}

static void cnp_for_nobody(struct forge *f)
{
	begin_cnp(f, any_pair(f));
	f->t.dest_qpn = 0;
	build(f);
}

static void qp_in_init(struct forge *f)
{
	begin(f, RC_INIT);
	build(f);
}

static void response_in_rtr(struct forge *f)
{
	begin_response(f, RC_RTR);
	build(f);
}

static void eth_qp(struct forge *f)
{
	begin(f, any_pair(f));
	f->t.dest_qpn = f->s->qp[ETH]->number;
	build(f);
}

static void other_transport(struct forge *f)
{
	enum target from, to;

	do {
		from = any_pair(f);
		to = any_pair(f);
	} while (is_ipv4(&(struct forge){ .path = f->s->path[from] }) !=
		 is_ipv4(&(struct forge){ .path = f->s->path[to] }) || from == to);
	begin_request(f, from);
	f->t.dest_qpn = f->s->qp[to]->number;
	build(f);
}

static void set_group(struct forge *f, uint8_t last)
{
	memcpy(f->path.dgid, f->s->group, 16);
	f->path.dgid[15] = last;
	memcpy(f->path.dmac, (uint8_t[6]){ 1, 0, 0x5e, 1, 2, last }, 6);
}

static void group_of_nobody(struct forge *f)
{
	begin(f, UD);
	set_group(f, 4);
	f->t.dest_qpn = 0xffffff;
	build(f);
	f->host = true;
}

static void connection_by_group(struct forge *f)
{
	enum target target = below(f, 2) ? UC : RC_IPV4;

	begin(f, target);
	set_group(f, 3);
	if (below(f, 2))
		f->t.dest_qpn = 0xffffff;
	build(f);
}

static void qp_by_group(struct forge *f)
{
	begin(f, UD);
	set_group(f, 3);
	build(f);
}

/* Stale and forged, requests */

static void ahead(struct forge *f)
{
	begin_request(f, f->s->odd ? RC_IPV6 : RC_IPV4);
	f->t.psn = psn_add(f->t.psn, 1 + below(f, (1 << 23) - 1));
	build(f);
}

static void ahead_of_a_target(struct forge *f)
{
	begin_request(f, XRC);
	f->t.psn = psn_add(f->t.psn, 1 + below(f, (1 << 23) - 1));
	build(f);
}

static void behind(struct forge *f)
{
	do
		begin_request(f, any_responder(f));
	while (f->t.op >= TRAIN_READ_REQ);
	f->t.psn = psn_add(f->t.psn, -1 - below(f, 1 << 23));
	f->answered = f->t.ack_req;
	build(f);
}

/* Before all that is remembered. It may be a FLUSH all the same, as none is. */
static void read_behind(struct forge *f)
{
	static const enum train_op ops[] = { TRAIN_READ_REQ, TRAIN_CMP_SWAP, TRAIN_FETCH_ADD, TRAIN_FLUSH,
					     TRAIN_ATOMIC_WRITE, TRAIN_MASKED_CMP_SWAP, TRAIN_MASKED_FETCH_ADD };

	begin_op(f, any_rc(f), ops[below(f, ARRAY_SIZE(ops))]);
	f->t.psn = psn_add(f->t.psn, -(1u << 22) - below(f, 1 << 22));
	f->answered = f->t.op == TRAIN_FLUSH;
	build(f);
}

/* Like the last READ, but for one thing. */
static void read_again_of_more(struct forge *f)
{
	const struct roce_resp *resp;
	const struct served *last;

	begin_op(f, any_rc(f), TRAIN_READ_REQ);
	resp = &rc_of(f->s->qp[f->path.sgid[0] ? RC_IPV6 : RC_IPV4])->resp;
	last = &resp->served[(resp->num_served - 1) % resp->jobs_size];
	f->t.psn = last->psn;
	f->t.raddr = last->raddr;
	f->t.msg_len = last->length;
	switch (below(f, 4)) {
	case 0:
		f->t.rkey = below(f, 2) ? f->s->other_key : f->s->stale_key;
		break;
	case 1:
		f->t.raddr -= 1 + below(f, 1 << 20);
		break;
	case 2:
		f->t.raddr += 1 + below(f, 1 << 20);
		break;
	default:
		f->t.msg_len += 1 + below(f, 1 << 20);
	}
	build(f);
}

static void no_receive(struct forge *f)
{
	begin_op(f, any_responder(f), below(f, 2) ? TRAIN_SEND : TRAIN_WRITE_IMM);
	f->answered = true;
	build(f);
}

/* Stale and forged, responses */

/* Behind all that was sent, or before all that was acknowledged. */
static uint32_t psn_of_nothing(struct forge *f, const struct skua_qp *qp)
{
	return below(f, 2) ? psn_add(rc_of(qp)->req.oldest_unacked_psn, -1 - below(f, 1 << 22)) :
	       psn_add(qp->sq.psn, below(f, 1 << 22));
}

static void response_of_nothing(struct forge *f)
{
	static const uint8_t syndromes[] = { 0, AETH_ACK, AETH_RNR, AETH_RNR | 31, AETH_NAK_SEQ,
		AETH_NAK_INV_REQ, AETH_NAK_ACCESS, AETH_NAK_OP, 0x65, 0x80, 0xff };
	enum target target = below(f, 2) ? any_rc(f) : RC_BUSY;

	begin_response(f, target);
	f->t.syndrome = syndromes[below(f, ARRAY_SIZE(syndromes))];
	f->t.psn = psn_of_nothing(f, f->s->qp[target]);
	build(f);
}

static void response_to_a_target(struct forge *f)
{
	begin_response(f, XRC);
	build(f);
}

static void unknown_syndrome(struct forge *f)
{
	begin_op(f, RC_BUSY, TRAIN_ACK);
	do
		f->t.syndrome = (uint8_t)forge_random(f->s);
	while (AETH_TYPE(f->t.syndrome) == 0 || AETH_TYPE(f->t.syndrome) == AETH_RNR ||
	       (f->t.syndrome >= AETH_NAK_SEQ && f->t.syndrome <= AETH_NAK_OP));
	build(f);
}

/* Datagrams, and UC */

static void other_qkey(struct forge *f)
{
	begin(f, UD);
	f->t.qkey ^= 1u << below(f, 32);
	build(f);
}

static void datagram_without_receive(struct forge *f)
{
	begin(f, UD);
	build(f);
}

static void uc_without_receive(struct forge *f)
{
	begin_op(f, UC, below(f, 2) ? TRAIN_SEND : TRAIN_SEND_IMM);
	build(f);
}

static uint32_t bad_key(struct forge *f)
{
	const uint32_t keys[] = { f->s->victim->key ^ (1 + below(f, 255)), f->s->stale_key,
				  f->s->foreign_key, f->s->local_key, RESERVED_LKEY, 0 };

	return keys[below(f, ARRAY_SIZE(keys))];
}

static void uc_bad_key(struct forge *f)
{
	begin_op(f, UC, TRAIN_WRITE);
	f->t.rkey = bad_key(f);
	f->t.msg_len = 1 + below(f, 200);
	load(f, f->t.msg_len);
	build(f);
}

static void uc_end_without_beginning(struct forge *f)
{
	begin_op(f, UC, TRAIN_WRITE);
	f->t.first = false;
	load(f, 1 + below(f, FORGE_PMTU));
	build(f);
}

/* Frames of selective repeat */

static void repeat_frame(struct forge *f, enum repeat_type type)
{
	struct scene *s = f->s;
	struct repeat_frame frame = {
		.type = type, .path = s->path[RC_BUSY], .answer = below(f, 2),
		.dest_qpn = s->qp[RC_BUSY]->number, .psn = rc_of(s->qp[RC_BUSY])->req.oldest_unacked_psn,
		.held = { (uint8_t)forge_random(s) },
	};

	f->path = frame.path;
	f->answered = false;
	f->host = true;			/* counters of packets do not count it */
	f->len = (uint32_t)repeat_build(f->frame, &frame);
}

#define REPEAT_HEAD	14		/* where it begins in the frame */

static void repeat_corrupt(struct forge *f)
{
	repeat_frame(f, 1 + below(f, 2));
	f->frame[REPEAT_HEAD + 4 + below(f, f->len - REPEAT_HEAD - 4)] ^= other(f);
}

static void repeat_other_version(struct forge *f)
{
	repeat_frame(f, 1 + below(f, 2));
	f->frame[REPEAT_HEAD + 4] ^= other(f);
	repeat_seal(f->frame, f->len);
}

static void repeat_other_type(struct forge *f)
{
	repeat_frame(f, 1 + below(f, 2));
	f->frame[REPEAT_HEAD + 5] = (uint8_t)(3 + below(f, 253));
	repeat_seal(f->frame, f->len);
}

static void repeat_cut(struct forge *f)
{
	repeat_frame(f, 1 + below(f, 2));
	f->len = REPEAT_HEAD + 8 + below(f, f->len - REPEAT_HEAD - 8);
}

static void repeat_from_group(struct forge *f)
{
	repeat_frame(f, 1 + below(f, 2));
	f->frame[6] |= 1;
	repeat_seal(f->frame, f->len);
}

static void repeat_other_source(struct forge *f)
{
	repeat_frame(f, REPEAT_MISSING);
	f->frame[REPEAT_HEAD + 8 + below(f, 32)] ^= other(f);
	repeat_seal(f->frame, f->len);
}

static void repeat_no_such_qp(struct forge *f)
{
	repeat_frame(f, REPEAT_MISSING);
	do
		f->frame[REPEAT_HEAD + 40 + 1 + below(f, 3)] ^= other(f);
	while (numtab_get(&f->s->victim->dev->qps, (uint32_t)f->frame[REPEAT_HEAD + 41] << 16 |
			  (uint32_t)f->frame[REPEAT_HEAD + 42] << 8 | f->frame[REPEAT_HEAD + 43]));
	repeat_seal(f->frame, f->len);
}

static void repeat_of_nothing(struct forge *f)
{
	uint32_t psn = psn_of_nothing(f, f->s->qp[RC_BUSY]);

	repeat_frame(f, REPEAT_MISSING);
	f->frame[REPEAT_HEAD + 45] = (uint8_t)(psn >> 16);
	put16(f->frame + REPEAT_HEAD + 46, psn);
	repeat_seal(f->frame, f->len);
}

static void hello_of_a_stranger(struct forge *f)
{
	repeat_frame(f, REPEAT_HELLO);
	for (int i = 7; i < 12; i++)
		f->frame[i] = (uint8_t)forge_random(f->s);
	f->frame[6] = 2 | 0x40;
	repeat_seal(f->frame, f->len);
}

/* What ends a connection: who sends it knows addresses, QPN and PSN. */

static void no_right(struct forge *f)
{
	static const enum train_op ops[] = { TRAIN_WRITE, TRAIN_WRITE_IMM, TRAIN_READ_REQ, TRAIN_FETCH_ADD,
					     TRAIN_CMP_SWAP, TRAIN_FLUSH, TRAIN_ATOMIC_WRITE,
					     TRAIN_MASKED_CMP_SWAP, TRAIN_MASKED_FETCH_ADD };
	enum train_op op = ops[below(f, ARRAY_SIZE(ops))];

	begin_op(f, RC_IPV4, op);
	if (op != TRAIN_ATOMIC_WRITE)
		f->t.msg_len = 1 + below(f, 200);
	if (f->t.payload)
		load(f, f->t.msg_len);
	if (op == TRAIN_WRITE && below(f, 2)) {
		/* This packet is in bounds, the end of its message is not. */
		f->t.last = false;
		f->t.msg_len = 2 * FORGE_PMTU;
		load(f, FORGE_PMTU);
		f->t.raddr = f->s->victim->buf + BUF_SIZE - FORGE_PMTU - below(f, FORGE_PMTU);
	} else if (below(f, 2) && op < TRAIN_CMP_SWAP) {
		f->t.raddr = f->s->victim->buf + BUF_SIZE - below(f, f->t.msg_len);
	} else if (below(f, 2) && op < TRAIN_CMP_SWAP) {
		f->t.raddr = forge_random(f->s) << 20;
	} else {
		f->t.rkey = bad_key(f);
	}
	build(f);
}

static void invalid_request(struct forge *f)
{
	begin_op(f, RC_IPV4, TRAIN_WRITE);
	f->t.msg_len = 100;
	load(f, 100);
	switch (below(f, 8)) {
	case 0:
		f->t.first = false;		/* an end without a beginning */
		break;
	case 1:
		f->t.last = false;		/* a first packet that is not full */
		break;
	case 2:
		f->t.msg_len += 1 + below(f, 1000);
		break;
	case 3:
		load(f, 101 + below(f, 100));
		break;
	case 4:
		f->t.pmtu = 4096;
		f->t.msg_len = FORGE_PMTU + 1 + below(f, 300);
		load(f, f->t.msg_len);
		break;
	case 5:
		begin_op(f, RC_IPV4, TRAIN_FLUSH);
		f->t.flush = below(f, 2) ? SKUA_FLUSH_MR : SKUA_FLUSH_GLOBAL | 4 << below(f, 2);
		break;
	case 6:
		begin_op(f, RC_IPV4, TRAIN_ATOMIC_WRITE);
		f->t.msg_len++;
		break;
	default:
		begin_op(f, RC_IPV4, below(f, 2) ? TRAIN_FETCH_ADD : TRAIN_MASKED_FETCH_ADD);
		f->t.raddr += 1 + below(f, 7);
	}
	build(f);
}

/* The SRQ is of no domain, or is none. */
static void foreign_srq(struct forge *f)
{
	begin_request(f, XRC);
	f->t.srqn = below(f, 2) ? f->s->foreign_srqn : below(f, 2) ? f->s->srqn ^ 1u << below(f, 24) : 0;
	build(f);
}

#define C(name)	(offsetof(struct device_stats, name))

#define KIND(name_, forge_, cause_, ...)	{ .name = name_, .forge = forge_, .cause = cause_, ##__VA_ARGS__ }

const struct kind forge_kinds[] = {
	KIND("corrupt", corrupt, C(rdma_rx_bad_icrc)),
	KIND("corrupt IP checksum", corrupt_ip_checksum, C(rdma_rx_bad_packet)),
	KIND("version", other_version, C(rdma_rx_bad_packet)),
	KIND("unknown opcode", unknown_opcode, C(rdma_rx_bad_opcode)),
	KIND("P_Key", other_pkey, C(rdma_rx_bad_pkey)),
	KIND("cut", cut, C(rdma_rx_bad_packet)),
	KIND("cut in headers", cut_in_headers, C(rx_no_buffer)),
	KIND("UDP length", other_udp_length, C(rdma_rx_bad_packet)),
	KIND("IP length", other_ip_length, C(rdma_rx_bad_packet)),
	KIND("headers missing", headers_missing, C(rdma_rx_bad_packet)),
	KIND("BTH missing", bth_missing, C(rdma_rx_bad_packet)),
	KIND("not words", not_words, C(rdma_rx_bad_packet)),
	KIND("pad", more_pad_than_payload, C(rdma_rx_bad_packet)),
	KIND("payload of none", payload_of_none, C(rdma_rx_bad_packet)),
	KIND("over the MTU", over_the_mtu, C(rdma_rx_bad_packet)),

	KIND("destination", other_destination, C(rx_no_buffer)),
	KIND("destination MAC", other_dmac, NO_CAUSE),
	KIND("broadcast", to_all, C(rx_no_buffer)),
	KIND("VLAN", other_vlan, C(rx_no_buffer)),
	KIND("UDP port", other_port, C(rx_no_buffer)),
	KIND("fragment", fragment, C(rx_no_buffer)),
	KIND("IP options", ip_options, C(rx_no_buffer)),
	KIND("IPv6 extension", ipv6_extension, C(rx_no_buffer)),
	KIND("IPv4 in IPv6", ipv4_address_in_ipv6, C(rx_no_buffer)),
	KIND("source", other_source, C(rdma_rx_bad_addr)),
	KIND("second address", to_second_address, C(rdma_rx_bad_addr)),
	KIND("no such QP", no_such_qp, C(rdma_rx_bad_qp)),
	KIND("CNP for datagrams", cnp_for_datagrams, C(rdma_rx_bad_opcode)),
	KIND("CNP source", cnp_from_elsewhere, C(rdma_rx_bad_addr)),
	KIND("CNP for nobody", cnp_for_nobody, C(rdma_rx_bad_qp)),
	KIND("QP in INIT", qp_in_init, C(rdma_rx_bad_qp)),
	KIND("response in RTR", response_in_rtr, C(rdma_rx_bad_qp)),
	KIND("QP of Ethernet", eth_qp, C(rdma_rx_bad_qp)),
	KIND("transport", other_transport, C(rdma_rx_bad_opcode)),
	KIND("group of nobody", group_of_nobody, C(rx_no_buffer)),
	KIND("connection by group", connection_by_group, C(rdma_rx_bad_packet)),
	KIND("QP by group", qp_by_group, C(rdma_rx_bad_packet)),

	KIND("ahead", ahead, C(out_of_order), .one_nak = true),
	KIND("ahead of a target", ahead_of_a_target, C(out_of_order), .one_nak = true),
	KIND("behind", behind, C(duplicates)),
	KIND("READ behind", read_behind, C(duplicates)),
	KIND("READ again of more", read_again_of_more, C(duplicates)),
	KIND("no receive", no_receive, C(rnr_nak_sent)),
	KIND("response of nothing", response_of_nothing, NO_CAUSE),
	KIND("response to a target", response_to_a_target, C(rdma_rx_bad_opcode)),
	KIND("syndrome", unknown_syndrome, C(rdma_rx_bad_packet)),
	KIND("Q_Key", other_qkey, C(rdma_rx_bad_qkey)),
	KIND("UD without receive", datagram_without_receive, C(rdma_rx_no_receive)),
	KIND("UC without receive", uc_without_receive, C(rdma_rx_no_receive)),
	KIND("UC key", uc_bad_key, C(rdma_rx_incomplete)),
	KIND("UC end", uc_end_without_beginning, C(rdma_rx_incomplete)),

	KIND("repeat corrupt", repeat_corrupt, C(rdma_rx_bad_packet)),
	KIND("repeat version", repeat_other_version, C(rdma_rx_bad_packet)),
	KIND("repeat type", repeat_other_type, C(rdma_rx_bad_packet)),
	KIND("repeat cut", repeat_cut, C(rdma_rx_bad_packet)),
	KIND("repeat from group", repeat_from_group, C(rdma_rx_bad_packet)),
	KIND("MISSING source", repeat_other_source, C(rdma_rx_bad_addr)),
	KIND("MISSING QP", repeat_no_such_qp, C(rdma_rx_bad_qp)),
	KIND("MISSING of nothing", repeat_of_nothing, NO_CAUSE),
	KIND("HELLO", hello_of_a_stranger, NO_CAUSE),

	KIND("no right", no_right, C(access_nak_sent), .event = SKUA_EVENT_QP_ACCESS_ERR),
	KIND("invalid request", invalid_request, C(invalid_nak_sent), .event = SKUA_EVENT_QP_REQ_ERR),
	KIND("SRQ of no domain", foreign_srq, C(invalid_nak_sent), .event = SKUA_EVENT_QP_ACCESS_ERR, .target = XRC),
};

const size_t forge_num_kinds = ARRAY_SIZE(forge_kinds);
