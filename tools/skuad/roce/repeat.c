// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Selective repeat: its frames, and which peers offer it.
 *
 * A peer is asked only after a loss, so there are no such frames on a wire that loses nothing. No frame completes a
 * work request or places a byte, so forged frames can only make a QP slow.
 */
#include <endian.h>
#include <string.h>

#include <libdeflate.h>

#include "base/bytes.h"
#include "packet/wire.h"
#include "roce/repeat.h"
#include "roce/roce.h"

#define ETH_TYPE_REPEAT	0x88b5		/* IEEE 802: local experiments */
#define MAGIC		0x536b7561u	/* "Skua" */
#define VERSION		1
#define HELLO_ANSWER	0x01
#define MISSING_DUPLICATE 0x01

#define HEAD_LEN	8		/* magic, version, type, flags, reserved */
#define MISSING_LEN	(2 * 16 + 4 + 4 + REPEAT_WINDOW / 8)
#define CRC_LEN		4

#define HOLD_NS		60000000000ull	/* an offer holds for so long */
#define RENEW_NS	30000000000ull	/* and is asked for again with so much left */
#define ASK_MIN_NS	1000000ull
#define ASK_MAX_NS	1000000000ull

static uint32_t crc(const uint8_t *frame, size_t len)
{
	return htole32(libdeflate_crc32(0, frame, len));
}

void repeat_seal(uint8_t *frame, size_t len)
{
	uint32_t sum = crc(frame, len - CRC_LEN);

	memcpy(frame + len - CRC_LEN, &sum, CRC_LEN);
}

uint32_t repeat_end(const struct repeat_frame *f)
{
	uint32_t n = REPEAT_WINDOW;

	while (n && !repeat_holds(f, psn_add(f->psn, n)))
		n--;
	return n ? psn_add(f->psn, n + 1) : f->psn;
}

size_t repeat_build(uint8_t *buf, const struct repeat_frame *f)
{
	uint8_t *p = buf;

	p = put_bytes(p, f->path.dmac, 6);
	p = put_bytes(p, f->path.smac, 6);
	if (f->path.vlan != SKUA_VLAN_NONE) {
		p = put16(p, ETH_TYPE_VLAN);
		p = put16(p, (uint16_t)((f->path.sl & 7) << 13 | (f->path.vlan & 0xfff)));
	}
	p = put16(p, ETH_TYPE_REPEAT);
	p = put32(p, MAGIC);
	*p++ = VERSION;
	*p++ = (uint8_t)f->type;
	*p++ = (uint8_t)((f->answer ? HELLO_ANSWER : 0) | (f->duplicate ? MISSING_DUPLICATE : 0));
	*p++ = 0;
	if (f->type == REPEAT_MISSING) {
		p = put_bytes(p, f->path.sgid, 16);
		p = put_bytes(p, f->path.dgid, 16);
		p = put32(p, f->dest_qpn & 0xffffff);
		p = put32(p, f->psn & PSN_MASK);
		p = put_bytes(p, f->held, sizeof(f->held));
	}
	p += CRC_LEN;
	repeat_seal(buf, (size_t)(p - buf));
	return (size_t)(p - buf);
}

/* Where its head begins; NULL: it is another protocol's. */
static const uint8_t *head_of(const uint8_t *frame, size_t len, uint16_t *vlan)
{
	const uint8_t *p = frame + ETH_LEN - 2;

	*vlan = SKUA_VLAN_NONE;
	if (len >= ETH_LEN + VLAN_LEN && get16(p) == ETH_TYPE_VLAN) {
		*vlan = get16(p + 2) & 0xfff;
		if (!*vlan)
			*vlan = SKUA_VLAN_NONE;
		p += VLAN_LEN;
	}
	if ((size_t)(p - frame) + 2 + HEAD_LEN > len || get16(p) != ETH_TYPE_REPEAT ||
	    get32(p + 2) != MAGIC)
		return NULL;
	return p + 2;
}

bool repeat_is_frame(const uint8_t *frame, size_t len)
{
	uint16_t vlan;

	return head_of(frame, len, &vlan);
}

bool repeat_parse(struct repeat_frame *f, const uint8_t *frame, size_t len)
{
	struct roce_path path = { 0 };
	const uint8_t *p = head_of(frame, len, &path.vlan);
	uint32_t sum;
	size_t body;

	if (!p || p[4] != VERSION || (p[5] != REPEAT_HELLO && p[5] != REPEAT_MISSING))
		return false;
	body = (size_t)(p - frame) + HEAD_LEN + (p[5] == REPEAT_MISSING ? MISSING_LEN : 0);
	/* Ethernet may have padded it. */
	if (len < body + CRC_LEN)
		return false;
	*f = (struct repeat_frame){ .type = p[5] };
	if (f->type == REPEAT_HELLO)
		f->answer = p[6] & HELLO_ANSWER;
	else
		f->duplicate = p[6] & MISSING_DUPLICATE;
	sum = crc(frame, body);
	if (memcmp(&sum, frame + body, CRC_LEN))
		return false;
	memcpy(path.dmac, frame, 6);
	memcpy(path.smac, frame + 6, 6);
	p += HEAD_LEN;
	if (f->type == REPEAT_MISSING) {
		memcpy(path.sgid, p, 16);
		memcpy(path.dgid, p + 16, 16);
		f->dest_qpn = get32(p + 32) & 0xffffff;
		f->psn = get32(p + 36) & PSN_MASK;
		memcpy(f->held, p + 40, sizeof(f->held));
	}
	f->path = path;
	return !(path.smac[0] & 1);
}

bool repeat_send(struct skua_dev *dev, const struct repeat_frame *f)
{
	uint8_t buf[REPEAT_FRAME];
	struct seglist frame;

	if (!dev_running(dev) || !(dev->port_flags & SKUA_PORT_F_ENABLE))
		return true;
	frame.n = 1;
	frame.bytes = (uint32_t)repeat_build(buf, f);
	frame.seg[0] = (struct seg){ buf, frame.bytes };
	return port_send_frame(dev->port, &frame) != PORT_BUSY;
}

static bool offers(const struct skua_dev *dev, const struct repeat_peer *p)
{
	return engine_now(dev->engine) < p->offered_until;
}

/* The entry of @mac, which is used now; NULL: there is none. */
static struct repeat_peer *find_peer(struct skua_dev *dev, const uint8_t *mac)
{
	for (struct repeat_peer *p = dev->roce->peers; p < dev->roce->peers + REPEAT_PEERS + REPEAT_ASKED; p++) {
		if (p->ask_interval && !memcmp(p->mac, mac, 6)) {
			p->last_used_at = engine_now(dev->engine);
			return p;
		}
	}
	return NULL;
}

/* Of the entries with an offer, or of those without, that which was used longest ago. @n: how many there are. */
static struct repeat_peer *oldest_peer(struct skua_dev *dev, bool offer, unsigned int *n)
{
	struct repeat_peer *oldest = NULL;

	*n = 0;
	for (struct repeat_peer *p = dev->roce->peers; p < dev->roce->peers + REPEAT_PEERS + REPEAT_ASKED; p++) {
		if (offers(dev, p) != offer)
			continue;
		++*n;
		if (!oldest || p->last_used_at < oldest->last_used_at)
			oldest = p;
	}
	return oldest;
}

/*
 * The entry of @mac, perhaps a new one. It takes the place of one without an offer. There always is one, as no more
 * than REPEAT_PEERS have an offer: so peers that are asked in vain push no offers out.
 */
static struct repeat_peer *make_peer(struct skua_dev *dev, const uint8_t *mac)
{
	struct repeat_peer *p = find_peer(dev, mac);
	unsigned int n;

	if (p)
		return p;
	p = oldest_peer(dev, false, &n);
	*p = (struct repeat_peer){ .ask_interval = ASK_MIN_NS, .last_used_at = engine_now(dev->engine) };
	memcpy(p->mac, mac, 6);
	return p;
}

bool repeat_agreed(struct skua_qp *qp)
{
	struct repeat_frame hello = { .type = REPEAT_HELLO, .path = qp->path, .answer = true };
	uint64_t now = engine_now(qp->dev->engine);
	struct repeat_peer *p;

	if (qp->dev->inject.go_back_n)
		return false;
	p = make_peer(qp->dev, qp->path.dmac);
	if (now + RENEW_NS >= p->offered_until && now >= p->next_ask_at && repeat_send(qp->dev, &hello)) {
		p->next_ask_at = now + p->ask_interval;
		if (p->ask_interval < ASK_MAX_NS)
			p->ask_interval *= 2;
	}
	return offers(qp->dev, p);
}

bool repeat_offered(struct skua_qp *qp)
{
	struct repeat_peer *p = qp->dev->inject.go_back_n ? NULL : find_peer(qp->dev, qp->path.dmac);

	return p && offers(qp->dev, p);
}

void repeat_hello(struct skua_dev *dev, const struct repeat_frame *f)
{
	struct repeat_frame answer = { .type = REPEAT_HELLO, .path = f->path };
	struct repeat_peer *p, *oldest;
	unsigned int n;

	if (dev->inject.go_back_n)
		return;
	p = make_peer(dev, f->path.smac);
	oldest = oldest_peer(dev, true, &n);
	if (!offers(dev, p) && n >= REPEAT_PEERS)
		*oldest = (struct repeat_peer){ 0 };
	p->offered_until = engine_now(dev->engine) + HOLD_NS;
	p->ask_interval = ASK_MIN_NS;
	memcpy(answer.path.dmac, f->path.smac, 6);
	memcpy(answer.path.smac, f->path.dmac, 6);
	/* Without room for it the peer asks again. */
	if (f->answer)
		repeat_send(dev, &answer);
}
