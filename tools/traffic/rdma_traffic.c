// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_traffic: operations at random over RC queue pairs between two RDMA devices of this
 * machine, in both directions, each compared byte for byte with its source, and the bytes around
 * its target with what they were. The same seed gives the same operations.
 *
 * Works on any RoCE devices that reach each other; needs nothing but libibverbs.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define SLOTS		4		/* operations under way on a queue pair */
#define GUARD		64		/* bytes before and after a target that must not change */
#define GUARD_BYTE	0xa5
#define SLACK		4096		/* the offset of a buffer in its window is below this */
#define MAX_SGES	4
#define MAX_INLINE	64
#define SHOWN		8		/* outstanding operations that a failure names */

enum op { SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, CMP_SWAP, FETCH_ADD, OPS };

/* The work requests of an operation; its wr_id says which one completes. */
enum part { REQUEST, RECEIVE, BIND, PARTS };

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool receives;			/* takes a receive of the peer */
} ops[OPS] = {
	[SEND] = { "send", IBV_WR_SEND, true },
	[SEND_IMM] = { "send_imm", IBV_WR_SEND_WITH_IMM, true },
	[SEND_INV] = { "send_inv", IBV_WR_SEND_WITH_INV, true },
	[WRITE] = { "write", IBV_WR_RDMA_WRITE, false },
	[WRITE_IMM] = { "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, true },
	[READ] = { "read", IBV_WR_RDMA_READ, false },
	[CMP_SWAP] = { "cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP, false },
	[FETCH_ADD] = { "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, false },
};

#define ATOMICS (1U << CMP_SWAP | 1U << FETCH_ADD)

/* What was asked for. */
static struct {
	const char *name[2];
	unsigned int ops;		/* a bit each; 0: all that both devices have */
	uint64_t min, max;		/* bytes of a message */
	uint64_t count, bytes;		/* end after so many operations or bytes; 0: no such end */
	unsigned int seconds;
	unsigned int hold;		/* seconds for which idle queue pairs stay */
	unsigned int qps;
	unsigned int patience;		/* seconds without a completion that are a failure */
	const char *on_failure;		/* a shell command, or NULL */
	uint64_t seed;
	bool quiet;
} opt = { .min = 0, .max = (1 << 20) + 1, .qps = 4, .patience = 30, .seed = 1 };

/* One device and what all queue pairs share there. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;		/* a window per queue pair and slot */
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;
	unsigned int reads;		/* READs and atomics under way on a queue pair */
	bool atomics, windows;		/* what the device has; windows of type 2 */
};

/* One operation under way. */
struct slot {
	bool busy;
	enum op op;
	unsigned int from;		/* the side that posts it */
	size_t size;
	size_t offset[2];		/* of the buffer in each side's window */
	unsigned int waits;		/* completions still to come */
	uint32_t imm;
	uint64_t before, operand;	/* of an atomic */
};

struct pair {
	struct ibv_qp *qp[2];
	struct slot slots[SLOTS];
	struct ibv_mw *mw[2][SLOTS];	/* by the side that has the memory; only with SEND_INV */
	uint32_t key[2][SLOTS];		/* the last key that the window was bound with */
};

static struct side sides[2];
static struct pair *pairs;
static size_t window;			/* bytes of one slot's memory */
static uint64_t random_state;
static uint64_t done_ops[OPS], done_bytes[OPS];
static bool connected;			/* all queue pairs: from here on nothing may fail */

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	fputs("rdma_traffic: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	/* The QPs still exist while it runs: it can look at the state that they failed in. */
	if (opt.on_failure && system(opt.on_failure))
		fprintf(stderr, "rdma_traffic: '%s' failed\n", opt.on_failure);
	exit(connected ? 1 : 2);
}

/* splitmix64: every seed is good. */
static uint64_t next_random(void)
{
	uint64_t x = random_state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t below(uint64_t limit)
{
	return next_random() % limit;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Devices and queue pairs */

/* A routable RoCE v2 GID; IPv4 before IPv6, as people's addresses are. */
static void find_gid(struct side *side, const char *name)
{
	struct ibv_gid_entry entries[256];
	ssize_t n = ibv_query_gid_table(side->context, entries, 256, 0);
	int best = 0;

	for (ssize_t i = 0; i < n; i++) {
		const uint8_t *raw = entries[i].gid.raw;
		int rank = raw[0] == 0xfe ? 1 : raw[10] == 0xff && raw[11] == 0xff ? 3 : 2;

		if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 || rank <= best)
			continue;
		best = rank;
		side->gid = entries[i].gid;
		side->gid_index = (int)entries[i].gid_index;
	}
	if (!best)
		die("%s has no RoCE v2 GID: is its network device up?", name);
}

static void open_side(struct side *side, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	struct ibv_device_attr attr;
	size_t size = (size_t)opt.qps * SLOTS * window;

	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			side->context = ibv_open_device(*d);
	if (!side->context)
		die("cannot open device %s", name);
	ibv_free_device_list(list);
	if (ibv_query_port(side->context, 1, &port) || ibv_query_device(side->context, &attr))
		die("cannot query %s", name);
	if (port.state != IBV_PORT_ACTIVE)
		die("%s is not active", name);
	side->mtu = port.active_mtu;
	side->reads = (unsigned int)(attr.max_qp_rd_atom < attr.max_qp_init_rd_atom ?
				     attr.max_qp_rd_atom : attr.max_qp_init_rd_atom);
	if (side->reads > SLOTS)
		side->reads = SLOTS;
	if (attr.atomic_cap == IBV_ATOMIC_NONE && opt.ops & ATOMICS)
		die("%s has no atomic operations", name);
	side->atomics = attr.atomic_cap != IBV_ATOMIC_NONE;
	side->windows = attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
						 IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	if (!side->windows && opt.ops & 1U << SEND_INV)
		die("%s has no memory windows of type 2", name);
	find_gid(side, name);
	side->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (side->memory == MAP_FAILED)
		die("no memory for %zu bytes", size);
	memset(side->memory, GUARD_BYTE, size);
	side->pd = ibv_alloc_pd(side->context);
	side->cq = ibv_create_cq(side->context, (int)(2 * SLOTS * opt.qps), NULL, NULL, 0);
	side->mr = side->pd ? ibv_reg_mr(side->pd, side->memory, size,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					 IBV_ACCESS_REMOTE_READ |
					 (side->windows ? IBV_ACCESS_MW_BIND : 0) |
					 (side->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0)) : NULL;
	if (!side->pd || !side->cq || !side->mr)
		die("%s: PD, CQ or MR: %s", name, strerror(errno));
}

static struct ibv_qp *create_qp(const struct side *side)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq, .recv_cq = side->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = MAX_SGES,
			 .max_recv_sge = MAX_SGES, .max_inline_data = MAX_INLINE },
	};
	struct ibv_qp *qp = ibv_create_qp(side->pd, &init);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   (side->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0),
	};

	if (!qp)
		die("create QP: %s", strerror(errno));
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("QP to INIT: %s", strerror(errno));
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct side *side, const struct side *peer,
		       uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = side->mtu < peer->mtu ? side->mtu : peer->mtu,
		.dest_qp_num = dest_qpn, .rq_psn = dest_qpn & 0xffffff,
		.max_dest_rd_atomic = (uint8_t)peer->reads, .min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = (uint8_t)side->gid_index,
				 .hop_limit = 64 },
		},
	};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER))
		die("QP to RTR: %s", strerror(errno));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .sq_psn = qp->qp_num & 0xffffff, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = (uint8_t)side->reads,
	};
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		die("QP to RTS: %s", strerror(errno));
}

static void alloc_windows(struct pair *pair, unsigned int side)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		pair->mw[side][i] = ibv_alloc_mw(sides[side].pd, IBV_MW_TYPE_2);
		if (!pair->mw[side][i])
			die("%s: memory window: %s", opt.name[side], strerror(errno));
		pair->key[side][i] = pair->mw[side][i]->rkey;
	}
}

static void connect_all(void)
{
	pairs = calloc(opt.qps, sizeof(*pairs));
	if (!pairs)
		die("no memory");
	for (unsigned int i = 0; i < opt.qps; i++) {
		for (unsigned int s = 0; s < 2; s++)
			pairs[i].qp[s] = create_qp(&sides[s]);
		for (unsigned int s = 0; s < 2; s++)
			connect_qp(pairs[i].qp[s], &sides[s], &sides[!s],
				   pairs[i].qp[!s]->qp_num);
		for (unsigned int s = 0; s < 2 && opt.ops & 1U << SEND_INV; s++)
			alloc_windows(&pairs[i], s);
	}
}

static void close_all(void)
{
	for (unsigned int i = 0; i < opt.qps; i++) {
		for (unsigned int s = 0; s < 2; s++) {
			if (ibv_destroy_qp(pairs[i].qp[s]))
				die("destroy QP: %s", strerror(errno));
			for (unsigned int j = 0; j < SLOTS && pairs[i].mw[s][j]; j++)
				if (ibv_dealloc_mw(pairs[i].mw[s][j]))
					die("free memory window: %s", strerror(errno));
		}
	}
	for (unsigned int s = 0; s < 2; s++)
		if (ibv_dereg_mr(sides[s].mr) || ibv_destroy_cq(sides[s].cq) ||
		    ibv_dealloc_pd(sides[s].pd) || ibv_close_device(sides[s].context))
			die("cleaning up %s: %s", opt.name[s], strerror(errno));
}

/* Operations */

static uint8_t *buffer(unsigned int side, const struct pair *pair, const struct slot *slot)
{
	size_t index = (size_t)(pair - pairs) * SLOTS + (size_t)(slot - pair->slots);

	return sides[side].memory + index * window + GUARD + slot->offset[side];
}

/* Cut a buffer into one to MAX_SGES pieces, some of them empty. */
static int cut(struct ibv_sge *sge, uint8_t *start, size_t size, uint32_t lkey)
{
	int n = 1 + (int)below(MAX_SGES);

	for (int i = 0; i < n; i++) {
		size_t piece = i == n - 1 ? size : below(size + 1);

		sge[i] = (struct ibv_sge){ (uintptr_t)start, (uint32_t)piece, lkey };
		start += piece;
		size -= piece;
	}
	return n;
}

/* Half of the sizes are small, a quarter lies around a multiple of the MTU. */
static size_t pick_size(void)
{
	uint64_t span = opt.max - opt.min + 1, kind = below(4), size;

	if (kind < 2)
		size = opt.min + below(span < 512 ? span : 512);
	else if (kind == 2)
		size = (1 + below(64)) * (128U << sides[0].mtu) + below(3) - 1;
	else
		size = opt.min + below(span);
	return size < opt.min ? opt.min : size > opt.max ? opt.max : size;
}

static void fill(uint8_t *to, size_t size)
{
	for (; size >= 8; to += 8, size -= 8)
		memcpy(to, &(uint64_t){ next_random() }, 8);
	memcpy(to, &(uint64_t){ next_random() }, size);
}

static enum op pick_op(void)
{
	enum op op;

	do {
		op = (enum op)below(OPS);
	} while (!(opt.ops & 1U << op));
	return op;
}

static bool is_atomic(enum op op)
{
	return op == CMP_SWAP || op == FETCH_ADD;
}

/* Where the data come from and where they go: sides. */
static unsigned int source(const struct slot *slot)
{
	return slot->op == READ ? !slot->from : slot->from;
}

static void prepare(struct pair *pair, struct slot *slot)
{
	*slot = (struct slot){
		.busy = true, .op = pick_op(), .from = (unsigned int)below(2),
		.size = pick_size(), .offset = { below(SLACK), below(SLACK) },
		.imm = (uint32_t)next_random(),
	};
	slot->waits = slot->op == SEND_INV ? 3 : ops[slot->op].receives ? 2 : 1;
	if (is_atomic(slot->op)) {
		uint8_t *target;

		slot->size = 8;
		slot->offset[0] &= ~7UL;
		slot->offset[1] &= ~7UL;
		slot->before = next_random();
		slot->operand = next_random();
		target = buffer(!slot->from, pair, slot);
		memcpy(target, &slot->before, 8);
		return;
	}
	fill(buffer(source(slot), pair, slot), slot->size);
}

static uint64_t wr_id(const struct pair *pair, const struct slot *slot, enum part part)
{
	return ((uint64_t)(pair - pairs) * SLOTS + (uint64_t)(slot - pair->slots)) * PARTS + part;
}

static void post_receive(struct pair *pair, struct slot *slot)
{
	unsigned int to = !slot->from;
	struct ibv_sge sge[MAX_SGES];
	struct ibv_recv_wr *bad, recv = {
		.wr_id = wr_id(pair, slot, RECEIVE), .sg_list = sge,
	};

	if (slot->op != WRITE_IMM)
		recv.num_sge = cut(sge, buffer(to, pair, slot), slot->size, sides[to].mr->lkey);
	if (ibv_post_recv(pair->qp[to], &recv, &bad))
		die("post receive: %s", strerror(errno));
}

/*
 * The receiver of a SEND with invalidate binds the slot's window. That fails unless the window is
 * free, which is how the next such operation finds whether this one freed it.
 */
static void post_bind(struct pair *pair, struct slot *slot)
{
	unsigned int to = !slot->from, index = (unsigned int)(slot - pair->slots);
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id(pair, slot, BIND), .opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = pair->mw[to][index],
			.rkey = pair->key[to][index] = ibv_inc_rkey(pair->key[to][index]),
			.bind_info = {
				.mr = sides[to].mr, .length = window,
				.addr = (uintptr_t)buffer(to, pair, slot) - slot->offset[to] - GUARD,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
			},
		},
	};

	if (ibv_post_send(pair->qp[to], &wr, &bad))
		die("post bind: %s", strerror(errno));
}

static void post_request(struct pair *pair, struct slot *slot)
{
	unsigned int from = slot->from, to = !from;
	struct ibv_sge sge[MAX_SGES];
	uint8_t *local = buffer(from, pair, slot), *remote = buffer(to, pair, slot);
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id(pair, slot, REQUEST), .sg_list = sge,
		.opcode = ops[slot->op].opcode,
	};

	if (slot->op == SEND_INV)
		wr.invalidate_rkey = pair->key[to][slot - pair->slots];
	else
		wr.imm_data = slot->imm;
	if (is_atomic(slot->op)) {
		sge[0] = (struct ibv_sge){ (uintptr_t)local, 8, sides[from].mr->lkey };
		wr.num_sge = 1;
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.rkey = sides[to].mr->rkey;
		wr.wr.atomic.compare_add = slot->op == CMP_SWAP && slot->operand & 1 ?
					   ~slot->before :
					   slot->op == CMP_SWAP ? slot->before : slot->operand;
		wr.wr.atomic.swap = slot->operand;
	} else {
		wr.num_sge = cut(sge, local, slot->size, sides[from].mr->lkey);
		wr.wr.rdma.remote_addr = (uintptr_t)remote;
		wr.wr.rdma.rkey = sides[to].mr->rkey;
		if (slot->op != READ && slot->size <= MAX_INLINE && below(2))
			wr.send_flags = IBV_SEND_INLINE;
	}
	if (ibv_post_send(pair->qp[from], &wr, &bad))
		die("post %s: %s", ops[slot->op].name, strerror(errno));
}

static void post_message(struct pair *pair, struct slot *slot)
{
	/* Receives are taken in the order of the messages, so none is posted before its message can be. */
	if (ops[slot->op].receives)
		post_receive(pair, slot);
	post_request(pair, slot);
}

static void post(struct pair *pair, struct slot *slot)
{
	if (slot->op == SEND_INV)
		post_bind(pair, slot);
	else
		post_message(pair, slot);
}

/* Checks */

static void check_bytes(const struct slot *slot, const char *what, const uint8_t *got,
			const uint8_t *want, size_t size)
{
	size_t i = 0;

	if (!memcmp(got, want, size))
		return;
	while (got[i] == want[i])
		i++;
	die("%s of %zu bytes from %s: %s differ at byte %zu: 0x%02x, not 0x%02x",
	    ops[slot->op].name, slot->size, opt.name[slot->from], what, i, got[i], want[i]);
}

static void check_atomic(struct pair *pair, struct slot *slot)
{
	uint64_t after = slot->op == FETCH_ADD ? slot->before + slot->operand :
			 slot->operand & 1 ? slot->before : slot->operand;

	check_bytes(slot, "fetched data", buffer(slot->from, pair, slot),
		    (uint8_t *)&slot->before, 8);
	check_bytes(slot, "data in memory", buffer(!slot->from, pair, slot), (uint8_t *)&after, 8);
}

static void check(struct pair *pair, struct slot *slot)
{
	static uint8_t guard[GUARD];

	memset(guard, GUARD_BYTE, GUARD);
	if (is_atomic(slot->op))
		check_atomic(pair, slot);
	else
		check_bytes(slot, "data", buffer(!source(slot), pair, slot),
			    buffer(source(slot), pair, slot), slot->size);
	for (unsigned int s = 0; s < 2; s++) {
		uint8_t *start = buffer(s, pair, slot);

		check_bytes(slot, "the bytes before", start - GUARD, guard, GUARD);
		check_bytes(slot, "the bytes behind", start + slot->size, guard, GUARD);
		memset(start, GUARD_BYTE, slot->size);
	}
	done_ops[slot->op]++;
	done_bytes[slot->op] += slot->size;
	slot->busy = false;
}

/* What a receive's completion says about the message. */
static void check_receive(const struct pair *pair, const struct slot *slot, const struct ibv_wc *wc)
{
	enum ibv_wc_opcode opcode = slot->op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	unsigned int flags = slot->op == SEND ? 0 : slot->op == SEND_INV ? IBV_WC_WITH_INV :
			     IBV_WC_WITH_IMM;
	uint32_t data = slot->op == SEND_INV ? pair->key[!slot->from][slot - pair->slots] :
			slot->imm;

	if (wc->opcode != opcode || wc->byte_len != slot->size ||
	    (wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) != flags ||
	    (flags && wc->imm_data != data))
		die("%s: the receive's completion has opcode %d, %u bytes, flags 0x%x, immediate or key 0x%x",
		    ops[slot->op].name, (int)wc->opcode, wc->byte_len, wc->wc_flags, wc->imm_data);
}

static void complete(const struct ibv_wc *wc, unsigned int side)
{
	static const char *const names[PARTS] = { "", "receive: ", "bind: " };
	struct pair *pair = &pairs[wc->wr_id / PARTS / SLOTS];
	struct slot *slot = &pair->slots[wc->wr_id / PARTS % SLOTS];
	enum part part = wc->wr_id % PARTS;

	if (wc->status != IBV_WC_SUCCESS)
		die("%s of %zu bytes from %s: %s%s (vendor error 0x%x)", ops[slot->op].name,
		    slot->size, opt.name[slot->from], names[part], ibv_wc_status_str(wc->status),
		    wc->vendor_err);
	if (!slot->busy || side != (part == REQUEST ? slot->from : !slot->from) ||
	    wc->qp_num != pair->qp[side]->qp_num)
		die("unexpected completion on %s", opt.name[side]);
	if (part == BIND)
		post_message(pair, slot);
	if (part == RECEIVE)
		check_receive(pair, slot, wc);
	if (--slot->waits == 0)
		check(pair, slot);
}

/* One round: poll both CQs. Returns the number of completions. */
static unsigned int poll_both(void)
{
	unsigned int found = 0;

	for (unsigned int s = 0; s < 2; s++) {
		struct ibv_wc wc[16];
		int n = ibv_poll_cq(sides[s].cq, 16, wc);

		if (n < 0)
			die("poll CQ of %s fails", opt.name[s]);
		for (int i = 0; i < n; i++)
			complete(&wc[i], s);
		found += (unsigned int)n;
	}
	return found;
}

static bool at_end(uint64_t posted, uint64_t posted_bytes, double end)
{
	return (opt.count && posted >= opt.count) || (opt.bytes && posted_bytes >= opt.bytes) ||
	       (opt.seconds && now() >= end);
}

/* Nothing completes any more: name some of the operations that are outstanding. */
__attribute__((noreturn)) static void stuck(void)
{
	unsigned int shown = 0, all = 0;

	for (unsigned int i = 0; i < opt.qps; i++) {
		for (const struct slot *slot = pairs[i].slots; slot < pairs[i].slots + SLOTS; slot++) {
			unsigned int from = slot->from;

			all += slot->busy;
			if (!slot->busy || shown++ >= SHOWN)
				continue;
			fprintf(stderr, "outstanding: %s of %zu bytes, %s QP %u to %s QP %u, %u completions\n",
				ops[slot->op].name, slot->size, opt.name[from],
				pairs[i].qp[from]->qp_num, opt.name[!from],
				pairs[i].qp[!from]->qp_num, slot->waits);
		}
	}
	die("nothing completed for %u s, %u operations are outstanding", opt.patience, all);
}

static void traffic(void)
{
	double start = now(), last = start, seconds;
	uint64_t posted = 0, posted_bytes = 0, ops_sum = 0, bytes_sum = 0;
	bool ended = false, busy = true;

	while (busy) {
		busy = false;
		for (unsigned int i = 0; i < opt.qps; i++) {
			for (struct slot *slot = pairs[i].slots; slot < pairs[i].slots + SLOTS; slot++) {
				ended = ended || at_end(posted, posted_bytes, start + opt.seconds);
				if (!slot->busy && !ended) {
					prepare(&pairs[i], slot);
					post(&pairs[i], slot);
					posted++;
					posted_bytes += slot->size;
				}
				busy = busy || slot->busy;
			}
			if (poll_both())
				last = now();
		}
		if (now() - last > opt.patience)
			stuck();
	}
	seconds = now() - start;
	for (int i = 0; i < OPS; i++) {
		ops_sum += done_ops[i];
		bytes_sum += done_bytes[i];
		if (!opt.quiet && done_ops[i])
			printf("%-10s %10" PRIu64 " operations %14" PRIu64 " bytes\n", ops[i].name,
			       done_ops[i], done_bytes[i]);
	}
	printf("%" PRIu64 " operations, %" PRIu64 " bytes, all verified, in %.2f s (seed %" PRIu64 ")\n",
	       ops_sum, bytes_sum, seconds, opt.seed);
}

/* Arguments */

static uint64_t number(struct argp_state *state, const char *text, char **end)
{
	uint64_t value;

	errno = 0;
	value = strtoull(text, end, 0);
	if (errno || *end == text || *text == '-')
		argp_error(state, "'%s' is not a number", text);
	if (**end && strchr("KMG", **end))
		value <<= *(*end)++ == 'K' ? 10 : (*end)[-1] == 'M' ? 20 : 30;
	return value;
}

static uint64_t whole_number(struct argp_state *state, const char *text)
{
	char *end;
	uint64_t value = number(state, text, &end);

	if (*end)
		argp_error(state, "'%s' is not a number", text);
	return value;
}

static void parse_sizes(struct argp_state *state, const char *text)
{
	char *end;

	opt.min = opt.max = number(state, text, &end);
	if (*end == '-')
		opt.max = number(state, end + 1, &end);
	if (*end || opt.max < opt.min || opt.max > 1U << 30)
		argp_error(state, "'%s' is not a SIZE or MIN-MAX of up to 1G", text);
}

static void parse_ops(struct argp_state *state, char *text)
{
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		unsigned int i = 0;

		while (i < OPS && strcmp(ops[i].name, word))
			i++;
		if (i == OPS)
			argp_error(state, "unknown operation '%s'", word);
		opt.ops |= 1U << i;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'o':
		parse_ops(state, arg);
		break;
	case 's':
		parse_sizes(state, arg);
		break;
	case 'n':
		opt.count = whole_number(state, arg);
		break;
	case 'b':
		opt.bytes = whole_number(state, arg);
		break;
	case 't':
		opt.seconds = (unsigned int)whole_number(state, arg);
		break;
	case 'q':
		opt.qps = (unsigned int)whole_number(state, arg);
		if (!opt.qps || opt.qps > 1U << 16)
			argp_error(state, "the number of queue pairs must be 1 to 65536");
		break;
	case 'H':
		opt.hold = (unsigned int)whole_number(state, arg);
		break;
	case 'r':
		opt.seed = whole_number(state, arg);
		break;
	case 'p':
		opt.patience = (unsigned int)whole_number(state, arg);
		break;
	case 'x':
		opt.on_failure = arg;
		break;
	case 'Q':
		opt.quiet = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			argp_error(state, "more than two devices are given");
		opt.name[state->arg_num] = arg;
		break;
	case ARGP_KEY_END:
		if (state->arg_num != 2)
			argp_error(state, "two devices are needed");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	{ "ops", 'o', "OPS", 0, "of send, send_imm, send_inv, write, write_imm, read, cmp_swap, fetch_add; all", 0 },
	{ "size", 's', "SIZE|MIN-MAX", 0, "bytes of a message; 0-1048577", 0 },
	{ "count", 'n', "N", 0, "end after N operations; default: 1000 if no end is given", 0 },
	{ "bytes", 'b', "N", 0, "end after N bytes (K, M, G: powers of 1024)", 0 },
	{ "time", 't', "SECONDS", 0, "end after SECONDS", 0 },
	{ "qps", 'q', "N", 0, "number of queue pairs; default: 4", 0 },
	{ "hold", 'H', "SECONDS", 0, "keep the idle queue pairs for SECONDS at the end", 0 },
	{ "patience", 'p', "SECONDS", 0, "fail if nothing completes for SECONDS; default: 30", 0 },
	{ "on-failure", 'x', "COMMAND", 0, "run COMMAND in a shell before a failure destroys the queue pairs", 0 },
	{ "seed", 'r', "N", 0, "seed of the random numbers; default: 1", 0 },
	{ "quiet", 'Q', NULL, 0, "print only the sum", 0 },
	{ 0 }
};

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "DEVICE DEVICE",
		"Does random operations between two RDMA devices, and verifies all data.\v"
		"The exit status is 2 if the devices cannot be opened or connected, and 1 if a later step fails.",
		NULL, NULL, NULL
	};

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!opt.count && !opt.bytes && !opt.seconds)
		opt.count = 1000;
	random_state = opt.seed;
	window = (opt.max + SLACK + 2 * GUARD + 4095) & ~4095UL;
	for (unsigned int s = 0; s < 2; s++)
		open_side(&sides[s], opt.name[s]);
	if (!opt.ops)
		opt.ops = (1U << OPS) - 1 -
			  (sides[0].atomics && sides[1].atomics ? 0 : ATOMICS) -
			  (sides[0].windows && sides[1].windows ? 0 : 1U << SEND_INV);
	connect_all();
	connected = true;
	traffic();
	fflush(stdout);
	sleep(opt.hold);
	close_all();
	return 0;
}
