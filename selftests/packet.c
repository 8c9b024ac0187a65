// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packet.h"

int packet_open(struct packet_qp *raw, struct side *side)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = PAIR_WRS, .max_recv_wr = PAIR_WRS, .max_send_sge = PAIR_SGES,
			 .max_recv_sge = PAIR_SGES, .max_inline_data = FRAME },
	};
	struct ibv_qp_attr attr = { .port_num = 1 };

	*raw = (struct packet_qp){
		.side = side, .mem = calloc(SLOTS + 1, SLOT), .cq = ibv_create_cq(side->context, 64, NULL, NULL, 0),
	};
	raw->mr = ibv_reg_mr(side->pd, raw->mem, (SLOTS + 1) * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!raw->cq || !raw->mr)
		return errno;
	init.send_cq = init.recv_cq = raw->cq;
	raw->qp = ibv_create_qp(side->pd, &init);
	if (!raw->qp)
		return errno;
	attr.qp_state = IBV_QPS_INIT;
	if (ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		return errno;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE))
		return errno;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(raw->qp, &attr, IBV_QP_STATE);
}

void packet_close(struct packet_qp *raw)
{
	if (raw->qp)
		ibv_destroy_qp(raw->qp);
	if (raw->mr)
		ibv_dereg_mr(raw->mr);
	if (raw->cq)
		ibv_destroy_cq(raw->cq);
	free(raw->mem);
}

int read_mac(const struct side *side, uint8_t *mac)
{
	struct ibv_device_attr attr;
	uint8_t guid[8];

	if (ibv_query_device(side->context, &attr))
		return -1;
	memcpy(guid, &attr.node_guid, sizeof(guid));
	memcpy(mac, guid, 3);
	memcpy(mac + 3, guid + 5, 3);
	mac[0] ^= 2;
	return 0;
}

struct rule rule_of(enum ibv_flow_attr_type type, uint16_t priority)
{
	return (struct rule){ .attr = { .type = type, .size = sizeof(struct ibv_flow_attr), .priority = priority,
					.port = 1 } };
}

void add_spec(struct rule *rule, const void *spec, size_t size)
{
	memcpy(rule->specs + rule->size, spec, size);
	rule->size += size;
	rule->attr.size += size;
	rule->attr.num_of_specs++;
}

void add_eth(struct rule *rule, struct ibv_flow_eth_filter val, struct ibv_flow_eth_filter mask)
{
	struct ibv_flow_spec_eth spec = { IBV_FLOW_SPEC_ETH, sizeof(spec), val, mask };

	add_spec(rule, &spec, sizeof(spec));
}

struct rule to_mac(const uint8_t *mac)
{
	struct rule rule = rule_of(IBV_FLOW_ATTR_NORMAL, 0);
	struct ibv_flow_eth_filter val = {}, mask = {};

	memcpy(val.dst_mac, mac, 6);
	memset(mask.dst_mac, 0xff, 6);
	add_eth(&rule, val, mask);
	return rule;
}

struct ibv_flow *flow(struct packet_qp *raw, struct rule rule)
{
	return ibv_create_flow(raw->qp, &rule.attr);
}

uint8_t *make_frame(struct packet_qp *raw, const uint8_t *dst, const uint8_t *src)
{
	uint8_t *p = raw->mem;

	pair_fill(p, FRAME, 3);
	memcpy(p, dst, 6);
	memcpy(p + 6, src, 6);
	memcpy(p + 12, (uint8_t[2]){ 0x88, 0xb5 }, 2);
	return p;
}

void make_udp(struct packet_qp *raw, const uint8_t *dst, const uint8_t *src, uint16_t port, uint16_t tag)
{
	uint8_t ip[28] = { 0x45, 0, 0, 86, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34,
			   port >> 8, port & 0xff, 0, 66 };
	uint8_t *p = make_frame(raw, dst, src) + 12;

	if (tag) {
		memcpy(p, (uint8_t[4]){ 0x81, 0, tag >> 8, tag & 0xff }, 4);
		p += 4;
	}
	memcpy(p, (uint8_t[2]){ 8, 0 }, 2);
	memcpy(p + 2, ip, sizeof(ip));
}

int post_recvs(struct packet_qp *raw, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		uint64_t slot = 1 + raw->posted++ % SLOTS;
		struct ibv_sge sge = { (uintptr_t)raw->mem + slot * SLOT, SLOT, raw->mr->lkey };
		struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

		if (ibv_post_recv(raw->qp, &wr, &bad))
			return errno;
	}
	return 0;
}

bool wait_wc(struct packet_qp *raw, struct ibv_wc *wc)
{
	for (int i = 0; i < 20000; i++) {
		int n = ibv_poll_cq(raw->cq, 1, wc);

		if (n)
			return n > 0;
		usleep(1000);
	}
	return false;
}

bool send_frame(struct packet_qp *raw, unsigned int flags)
{
	struct ibv_sge sge[] = {
		{ (uintptr_t)raw->mem, 13, raw->mr->lkey },
		{ (uintptr_t)raw->mem + 13, FRAME - 13, raw->mr->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 99, .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};
	struct ibv_wc wc;

	return !ibv_post_send(raw->qp, &wr, &bad) && wait_wc(raw, &wc) && wc.status == IBV_WC_SUCCESS &&
	       wc.wr_id == 99 && wc.opcode == IBV_WC_SEND;
}

bool got(struct packet_qp *raw, struct packet_qp *from)
{
	struct ibv_wc wc;

	return wait_wc(raw, &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV &&
	       wc.byte_len == FRAME && wc.qp_num == raw->qp->qp_num && !(wc.wc_flags & IBV_WC_GRH) &&
	       !memcmp(raw->mem + wc.wr_id * SLOT, from->mem, FRAME);
}

static uint32_t sum16(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	return sum;
}

uint32_t ip_sum(const uint8_t *ip, bool l4)
{
	uint32_t len = (ip[2] << 8 | ip[3]) - 20, sum;

	sum = l4 ? sum16(ip + 12, 8) + ip[9] + len + sum16(ip + 20, len) : sum16(ip, 20);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}
