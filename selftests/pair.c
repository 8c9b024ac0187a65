// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

int side_use_gid(struct side *side, bool ipv6)
{
	static const uint8_t prefixes[2][12] = { { [10] = 0xff, [11] = 0xff }, { 0x20, 0x01, 0x0d, 0xb8 } };
	const uint8_t *prefix = prefixes[ipv6];
	struct ibv_gid_entry entries[64];
	ssize_t n = ibv_query_gid_table(side->context, entries, 64, 0);

	for (ssize_t i = 0; i < n; i++) {
		if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entries[i].gid.raw, prefix, sizeof(prefixes[0])))
			continue;
		side->gid = entries[i].gid;
		side->gid_index = (uint8_t)entries[i].gid_index;
		return 0;
	}
	return -ENOENT;
}

int side_open(struct side *side, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int err = -ENODEV;

	memset(side, 0, sizeof(*side));
	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			side->context = ibv_open_device(*d);
	ibv_free_device_list(list);
	if (!side->context)
		return err;
	err = side_use_gid(side, false);
	if (err)
		goto err;
	err = -ENOMEM;
	side->mem = mmap(NULL, PAIR_MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (side->mem == MAP_FAILED) {
		side->mem = NULL;
		goto err;
	}
	side->pd = ibv_alloc_pd(side->context);
	side->channel = ibv_create_comp_channel(side->context);
	if (!side->pd || !side->channel)
		goto err;
	side->cq = ibv_create_cq(side->context, 4 * PAIR_WRS, NULL, side->channel, 0);
	side->mr = ibv_reg_mr(side->pd, side->mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE |
			      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (side->cq && side->mr)
		return 0;
err:
	side_close(side);
	return err;
}

void side_close(struct side *side)
{
	if (side->qp)
		ibv_destroy_qp(side->qp);
	if (side->mr)
		ibv_dereg_mr(side->mr);
	if (side->cq)
		ibv_destroy_cq(side->cq);
	if (side->channel)
		ibv_destroy_comp_channel(side->channel);
	if (side->pd)
		ibv_dealloc_pd(side->pd);
	if (side->mem)
		munmap(side->mem, PAIR_MEM);
	if (side->context)
		ibv_close_device(side->context);
	memset(side, 0, sizeof(*side));
}

struct ibv_qp *side_create_qp_of(struct side *side, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = side->cq, .recv_cq = side->cq, .qp_type = type,
		.cap = { .max_send_wr = PAIR_WRS, .max_recv_wr = PAIR_WRS,
			 .max_send_sge = PAIR_SGES, .max_recv_sge = PAIR_SGES,
			 .max_inline_data = 64 },
	};

	return ibv_create_qp(side->pd, &attr);
}

struct ibv_qp *side_create_qp(struct side *side)
{
	return side_create_qp_of(side, IBV_QPT_RC);
}

struct ibv_ah_attr side_ah(const struct side *side, const union ibv_gid *dgid)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *dgid, .sgid_index = side->gid_index, .hop_limit = 1 },
	};
}

int qp_to_init(struct ibv_qp *qp, unsigned int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

int qp_to_rtr_deep(struct ibv_qp *qp, const struct side *side, const struct side *peer,
		   uint32_t peer_qpn, uint8_t reads)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer_qpn,
		.rq_psn = 0xfffff0, .max_dest_rd_atomic = reads, .min_rnr_timer = 1,
		.ah_attr = side_ah(side, &peer->gid),
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER);
}

int qp_to_rtr(struct ibv_qp *qp, const struct side *side, const struct side *peer, uint32_t peer_qpn)
{
	return qp_to_rtr_deep(qp, side, peer, peer_qpn, PAIR_READS);
}

int qp_to_rts_deep(struct ibv_qp *qp, uint8_t timeout, uint8_t retry_cnt, uint8_t rnr_retry,
		   uint8_t reads)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .sq_psn = 0xfffff0, .timeout = timeout,
		.retry_cnt = retry_cnt, .rnr_retry = rnr_retry, .max_rd_atomic = reads,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

int qp_to_rts(struct ibv_qp *qp, uint8_t timeout, uint8_t retry_cnt, uint8_t rnr_retry)
{
	return qp_to_rts_deep(qp, timeout, retry_cnt, rnr_retry, PAIR_READS);
}

int qp_ud_to_rts(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

/* devlink is in the first namespace, where the device is. */
int nic_stays_dead(void)
{
	return system("at=$(readlink -f /proc/1/root/sys/class/infiniband/skua_0/device) && "
		      "nsenter --net=/proc/1/ns/net "
		      "devlink health set pci/${at##*/} reporter fatal auto_recover false");
}

int64_t side_counter(const struct side *side, const char *name)
{
	const char *device = ibv_get_device_name(side->context->device);
	char path[256];
	long long value;
	FILE *file;

	/* A namespace's own sysfs has no counters. */
	snprintf(path, sizeof(path), "/proc/1/root/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 device, name);
	/* They are read from the device when they are 10 ms old. */
	usleep(20000);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fscanf(file, "%lld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

/* From RESET to RTS. */
static int pair_connect(struct side sides[2])
{
	int err = 0;

	for (unsigned int i = 0; !err && i < 2; i++) {
		struct ibv_qp *qp = sides[i].qp;

		err = -qp_to_init(qp, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
		if (!err)
			err = -qp_to_rtr(qp, &sides[i], &sides[!i], sides[!i].qp->qp_num);
		if (!err)
			err = -qp_to_rts(qp, 10, 3, 3);
	}
	return err;
}

int pair_reconnect(struct side sides[2])
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	int err = 0;

	for (unsigned int i = 0; !err && i < 2; i++)
		err = -ibv_modify_qp(sides[i].qp, &attr, IBV_QP_STATE);
	return err ? err : pair_connect(sides);
}

int pair_open_of(struct side sides[2], enum ibv_qp_type type)
{
	int err = side_open(&sides[0], "skua_0");

	memset(&sides[1], 0, sizeof(sides[1]));
	if (!err)
		err = side_open(&sides[1], "skua_1");
	for (unsigned int i = 0; !err && i < 2; i++) {
		sides[i].qp = side_create_qp_of(&sides[i], type);
		err = sides[i].qp ? 0 : -errno;
	}
	if (err)
		pair_close(sides);
	return err;
}

int pair_open(struct side sides[2])
{
	int err = pair_open_of(sides, IBV_QPT_RC);

	if (err)
		return err;
	err = pair_connect(sides);
	if (err)
		pair_close(sides);
	return err;
}

void pair_close(struct side sides[2])
{
	side_close(&sides[0]);
	side_close(&sides[1]);
}

bool side_wait(struct side *side, struct ibv_wc *wc, unsigned int seconds)
{
	time_t end = time(NULL) + seconds + 1;

	do {
		if (ibv_poll_cq(side->cq, 1, wc) == 1)
			return true;
	} while (time(NULL) < end);
	return false;
}

void pair_fill(uint8_t *bytes, size_t size, uint8_t seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 8) * 3);
}

int side_post(struct side *side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(side->qp, wr, &bad);

	return err && bad != wr ? -1 : err;
}

static const enum ibv_wc_opcode completes_as[] = {
	[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
	[IBV_WR_SEND] = IBV_WC_SEND,
	[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
	[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
	[IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
};

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

const char *side_sends(struct side *side, struct ibv_send_wr *wr)
{
	struct ibv_wc wc;

	if (side_post(side, wr))
		return "refused";
	if (!side_wait(side, &wc, 5))
		return "no completion";
	return wc.status != IBV_WC_SUCCESS ? ibv_wc_status_str(wc.status) :
	       wc.opcode != completes_as[wr->opcode] ? "opcode" :
	       wc.wr_id != wr->wr_id ? "wr_id" :
	       wc.qp_num != side->qp->qp_num ? "QP" : NULL;
}

/* The receive that a request of the peer's takes completes well. */
static const char *received(struct side *side, const struct ibv_send_wr *wr, const struct ibv_recv_wr *recv)
{
	bool imm = wr->opcode != IBV_WR_SEND;
	struct ibv_wc wc;

	if (!side_wait(side, &wc, 5))
		return "no completion of the receive";
	return wc.status != IBV_WC_SUCCESS ? ibv_wc_status_str(wc.status) :
	       wc.wr_id != recv->wr_id ? "wr_id of the receive" :
	       wc.byte_len != recv->sg_list->length ? "length" :
	       wc.wc_flags != (imm ? IBV_WC_WITH_IMM : 0) ? "flags of the receive" :
	       imm && wc.imm_data != wr->imm_data ? "immediate" : NULL;
}

const char *pair_message(struct side sides[2], enum ibv_wr_opcode opcode, uint8_t *from, uint8_t *to,
			 uint32_t size)
{
	static uint8_t seed;
	struct side *a = &sides[0], *b = &sides[1];
	bool read = opcode == IBV_WR_RDMA_READ, receives = !read && opcode != IBV_WR_RDMA_WRITE;
	struct ibv_sge sge = { (uintptr_t)(read ? to : from), size, a->mr->lkey };
	struct ibv_sge recv_sge = { (uintptr_t)to, size, b->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = 0x12345678,
		.wr.rdma = { (uintptr_t)(read ? from : to), b->mr->rkey },
	};
	struct ibv_recv_wr *bad, recv = { .wr_id = 99, .sg_list = &recv_sge, .num_sge = 1 };
	const char *wrong;
	time_t end;

	seed += 29;
	pair_fill(from, size, seed);
	memset(to, (uint8_t)~seed, size + 1);
	if (receives && ibv_post_recv(b->qp, &recv, &bad))
		return "receive refused";
	wrong = side_sends(a, &wr);
	if (!wrong && receives)
		wrong = received(b, &wr, &recv);
	if (wrong)
		return wrong;
	/* Nobody tells when a WRITE has arrived by UC. */
	end = time(NULL) + 6;
	while (a->qp->qp_type == IBV_QPT_UC && !receives && memcmp(from, to, size) && time(NULL) < end)
		;
	return memcmp(from, to, size) ? "data" : to[size] != (uint8_t)~seed ? "data behind the end" : NULL;
}

#define TRANSFER	5000u	/* bytes: some packets, the last one odd */

bool pair_transfer(struct side sides[2])
{
	uint8_t *here = sides[0].mem, *there = sides[1].mem;

	return !pair_message(sides, IBV_WR_RDMA_WRITE, here, there + 8191, TRANSFER) &&
	       !pair_message(sides, IBV_WR_RDMA_READ, there + 8191, here + 20001, TRANSFER) &&
	       !pair_message(sides, IBV_WR_SEND, here + 20001, there, TRANSFER);
}

const char *pair_drops(struct side sides[2], const char *counter, struct ibv_send_wr *wr)
{
	struct side *b = &sides[1];
	int64_t before = side_counter(b, counter);
	const char *wrong = side_sends(&sides[0], wr);
	struct ibv_wc wc;

	if (wrong)
		return wrong;
	for (unsigned int i = 0; i < 100 && side_counter(b, counter) == before; i++)
		;
	return before < 0 ? "no such counter" :
	       side_counter(b, counter) != before + 1 ? counter :
	       ibv_poll_cq(b->cq, 1, &wc) ? "a completion" :
	       qp_state(b->qp) != IBV_QPS_RTS ? "state" :
	       qp_state(sides[0].qp) != IBV_QPS_RTS ? "state of the sender" : NULL;
}
