// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* FLUSH to persistence: what reaches the medium, and what waits for it. The medium is this test. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/device.h"
#include "harness/harness.h"

#define RIGHTS		(ALL_RIGHTS | SKUA_ACCESS_FLUSH_GLOBAL | SKUA_ACCESS_FLUSH_PERSISTENT)
#define PATIENCE	20000		/* looks, each of a millisecond */
#define MOST_SYNCS	200

struct block {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_rdma rdma;
	uint8_t bytes[32];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stands_still;
	int error;			/* that it has; 0: none */
	unsigned int begun, n;		/* writes; those that are done: */
	struct {
		uint8_t *at;
		size_t len;
	} sync[MOST_SYNCS];
} medium = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* In place of libc's. */
int msync(void *at, size_t len, int flags)
{
	int error;

	pthread_mutex_lock(&medium.lock);
	assert(flags == MS_SYNC && !((uintptr_t)at % 4096));
	medium.begun++;
	pthread_cond_broadcast(&medium.changed);
	while (medium.stands_still)
		pthread_cond_wait(&medium.changed, &medium.lock);
	if (medium.n < MOST_SYNCS) {
		medium.sync[medium.n].at = at;
		medium.sync[medium.n++].len = len;
	}
	error = medium.error;
	pthread_mutex_unlock(&medium.lock);
	errno = error;
	return error ? -1 : 0;
}

static bool no_threads;

/* In place of libc's, too. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	int (*libc)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	*(void **)&libc = dlsym(RTLD_NEXT, "pthread_create");
	return no_threads ? EAGAIN : libc(thread, attr, fn, arg);
}

static unsigned int count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	unsigned int n = 0;

	assert_non_null(tasks);
	while ((task = readdir(tasks)))
		n += task->d_name[0] != '.';
	closedir(tasks);
	return n;
}

static void stand_still(bool on)
{
	pthread_mutex_lock(&medium.lock);
	medium.stands_still = on;
	pthread_cond_broadcast(&medium.changed);
	pthread_mutex_unlock(&medium.lock);
}

/* The medium has begun @n writes. */
static void await_writes(unsigned int n)
{
	pthread_mutex_lock(&medium.lock);
	while (medium.begun < n)
		pthread_cond_wait(&medium.changed, &medium.lock);
	pthread_mutex_unlock(&medium.lock);
}

static unsigned int writes(void)
{
	unsigned int n;

	pthread_mutex_lock(&medium.lock);
	n = medium.begun;
	pthread_mutex_unlock(&medium.lock);
	return n;
}

/* Was all of [@at, @at + @len) written? */
static bool reached(const uint8_t *at, size_t len)
{
	bool all = true;

	pthread_mutex_lock(&medium.lock);
	for (const uint8_t *p = at; p < at + len; p++) {
		bool found = false;

		for (unsigned int i = 0; i < medium.n && !found; i++)
			found = p >= medium.sync[i].at && p < medium.sync[i].at + medium.sync[i].len;
		all &= found;
	}
	pthread_mutex_unlock(&medium.lock);
	return all;
}

static void give_rights(struct world *w, struct node *n)
{
	struct skua_cmd mr = create_mr_cmd(n);

	mr.create_mr.access = htole32(RIGHTS);
	mr.create_mr.length = htole64(1 << 20);
	mr.create_mr.pages = list(n->buf, 1 << 20);
	n->key = must(w, n, mr);
	must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_ACCESS,
			      (struct skua_qp_attr){ .access = htole32(RIGHTS & ~SKUA_ACCESS_LOCAL_WRITE) }));
}

static int begin(void **state, bool threaded)
{
	struct world *w = world_create_persistent(threaded);

	no_threads = false;
	medium.stands_still = false;
	medium.error = 0;
	medium.begun = 0;
	medium.n = 0;
	for (int i = 0; i < 2; i++)
		give_rights(w, &w->n[i]);
	*state = w;
	return 0;
}

static int setup(void **state)
{
	return begin(state, false);
}

static int setup_threads(void **state)
{
	return begin(state, true);
}

static void post_flush(struct node *a, uint32_t key, uint32_t what, uint64_t raddr, uint32_t length)
{
	struct block k = {
		.ctrl = { .opcode = SKUA_WQE_FLUSH, .flags = SKUA_WQE_SIGNALED, .nblocks = 1, .length = htole32(length),
			  .cookie = htole32(a->sq_pi) },
		.rdma = { htole64(raddr), htole32(key), htole32(what) },
	};

	post_block(a, &k);
}

/* The next CQE; the medium has its own time. */
static struct skua_cqe *await(struct world *w, struct node *n)
{
	struct skua_cqe *cqe;

	for (int i = 0; i < PATIENCE; i++) {
		settle(w);
		cqe = poll_cq(n);
		if (cqe)
			return cqe;
		usleep(1000);
	}
	fail_msg("no CQE");
	return NULL;
}

static void await_flush(struct world *w, struct node *n, uint8_t status)
{
	struct skua_cqe *cqe = await(w, n);

	assert_int_equal(cqe->opcode, SKUA_CQE_FLUSH);
	assert_int_equal(cqe->status, status);
}

/* Nothing completes while the medium stands still. */
static void expect_wait(struct world *w, struct node *n)
{
	for (int i = 0; i < 20; i++) {
		settle(w);
		assert_null(poll_cq(n));
		usleep(1000);
	}
}

static void a_range_reaches_the_medium(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint8_t *host = at(b, b->buf);
	uint32_t caps = ((struct skua_device_caps *)query(w, b, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE),
		sizeof(struct skua_device_caps)))->flush_caps;

	assert_int_equal(le32toh(caps), SKUA_FLUSH_GLOBAL | SKUA_FLUSH_PERSISTENT);
	stand_still(true);
	fill(a, 100, 1);
	post(a, SKUA_WQE_WRITE, 0, a->buf, 100, b->buf + 8192 + 4000, b->key, 0);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf + 8192 + 4000, 100);
	settle(w);
	await_writes(1);
	assert_memory_equal(host + 8192 + 4000, at(a, a->buf), 100);
	expect_wait(w, a);
	stand_still(false);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	/* Whole pages are written, and no others. */
	assert_true(reached(host + 8192, 8192));
	assert_false(reached(host + 8191, 1));
	assert_false(reached(host + 16384, 1));
}

static void both_placements(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	post_flush(a, b->key, SKUA_FLUSH_GLOBAL, b->buf, 100);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_int_equal(writes(), 0);
	post_flush(a, b->key, SKUA_FLUSH_PLACEMENTS, b->buf, 1);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_true(reached(at(b, b->buf), 1));
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 0);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_int_equal(writes(), 1);
}

static void all_of_an_mr(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(b);
	uint64_t l = take(b, 4096);
	uint32_t key;

	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT | SKUA_FLUSH_MR, 0, 0);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_true(reached(at(b, b->buf), 1 << 20));
	assert_false(reached((uint8_t *)at(b, b->buf) + (1 << 20), 1));

	/* Every second page, from the last to the first: more places than a job has room for. */
	medium.n = 0;
	for (uint64_t i = 0; i < 300; i++)
		((__le64 *)at(b, l))[i] = htole64((b->buf + (600 - 2 * i) * 4096) | SKUA_PL_PRESENT);
	mr.create_mr.access = htole32(RIGHTS);
	mr.create_mr.length = htole64(300 * 4096);
	mr.create_mr.pages = (struct skua_pagelist){ .npages = htole32(300), .level = 1, .log_page = 12,
						     .addr[0] = htole64(l | SKUA_PL_PRESENT) };
	key = must(w, b, mr);
	post_flush(a, key, SKUA_FLUSH_PERSISTENT | SKUA_FLUSH_MR, 0, 0);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	for (uint64_t i = 0; i < 300; i++)
		assert_true(reached((uint8_t *)at(b, b->buf) + (600 - 2 * i) * 4096, 4096));
}

/* Later requests are accepted, but answered behind it. */
static void what_comes_behind_it(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	stand_still(true);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	post(a, SKUA_WQE_READ, SKUA_WQE_SIGNALED, a->buf + 65536, 64, b->buf, b->key, 0);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf + 65536, 4096);
	fill(a, 64, 9);
	post(a, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, a->buf, 64, b->buf + 4096, b->key, 0);
	expect_wait(w, a);
	assert_memory_equal(at(b, b->buf + 4096), at(a, a->buf), 64);
	assert_int_equal(writes(), 1);
	stand_still(false);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_int_equal(await(w, a)->opcode, SKUA_CQE_READ);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_int_equal(await(w, a)->opcode, SKUA_CQE_WRITE);
	assert_true(reached(at(b, b->buf + 65536), 4096));
}

/* Both QPs anew; a waits as often as b tells it to. */
static void connect_patiently(struct world *w, struct node *a, struct node *b)
{
	struct skua_cmd rts = rts_cmd(a->qpn);

	reconnect(w, b, a);
	give_rights(w, b);
	must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
	must(w, a, init_cmd(a->qpn));
	must(w, a, rtr_cmd(a->qpn, b, b->qpn));
	rts.modify_qp.attr.rnr_retry = 7;
	must(w, a, rts);
}

/* A peer that asks again is told to wait, so it does not give up. */
static void a_slow_medium(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	connect_patiently(w, a, b);
	stand_still(true);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	settle(w);
	await_writes(1);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 0);
	for (int i = 0; i < 100; i++) {
		pass(w, 4096ull << 14);
		expect_none(w, a);
	}
	assert_true(STAT(w, b, rnr_nak_sent) > 10);
	assert_int_equal(writes(), 1);
	stand_still(false);
	for (int i = 0; i < PATIENCE; i++) {
		struct skua_cqe *cqe = poll_cq(a);

		if (cqe) {
			assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
			break;
		}
		usleep(1000);
		pass(w, 4096ull << 14);
		assert_true(i < PATIENCE - 1);
	}
	assert_int_equal(writes(), 1);
}

/* Only who asks for the FLUSH again is told to wait for it. */
static void repeats_of_others(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train read = train_from(b, TRAIN_READ_REQ, FIRST_PSN), flush = train_from(b, TRAIN_FLUSH, FIRST_PSN + 1);

	read.msg_len = flush.msg_len = 64;
	flush.flush = SKUA_FLUSH_PERSISTENT;
	stand_still(true);
	arrive(w, b, a, read);
	arrive(w, b, a, flush);
	await_writes(1);
	arrive(w, b, a, read);
	assert_int_equal(STAT(w, b, duplicates), 1);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 0);
	/* It is no request of this responder's. */
	read.psn = psn_add(FIRST_PSN, 1);
	arrive(w, b, a, read);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 0);
	arrive(w, b, a, flush);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
}

/* Who asks for a FLUSH that is just over does not ask for the next one. */
static void a_repeat_at_the_end(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct train flush = train_from(b, TRAIN_FLUSH, FIRST_PSN);

	flush.msg_len = 64;
	flush.flush = SKUA_FLUSH_PERSISTENT;
	stand_still(true);
	arrive(w, b, a, flush);
	await_writes(1);
	stand_still(false);
	while (!reached(at(b, b->buf), 1))
		usleep(1000);
	usleep(20000);
	arrive(w, b, a, flush);
	stand_still(true);
	flush.psn = psn_add(FIRST_PSN, 1);
	arrive(w, b, a, flush);
	await_writes(2);
	settle(w);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 0);
	arrive(w, b, a, flush);
	assert_int_equal(STAT(w, b, rnr_nak_sent), 1);
}

static void a_medium_that_fails(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	/* Some of the memory was unmapped, which is nobody's any more. */
	medium.error = ENOMEM;
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	medium.error = EIO;
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	await_flush(w, a, SKUA_CQE_REM_OP_ERR);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
	expect_event(w, b, SKUA_EVENT_QP_FATAL, b->qpn);
}

/* A thread that started earlier would be there before skuad gives up its rights, and would keep them. */
static void the_thread_starts_with_the_first_flush(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	unsigned int n = count_threads();

	for (int i = 0; i < 2; i++) {
		post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
		await_flush(w, a, SKUA_CQE_SUCCESS);
		assert_int_equal(count_threads(), n + 1);
	}
}

static void a_thread_that_cannot_start(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	no_threads = true;
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	await_flush(w, a, SKUA_CQE_REM_OP_ERR);
	assert_int_equal(qp_state(w, b, b->qpn), SKUA_QPS_ERR);
	expect_event(w, b, SKUA_EVENT_QP_FATAL, b->qpn);
	assert_int_equal(writes(), 0);
}

/* Nobody waits for the medium but the FLUSH, and what has ended is not answered. */
static void what_does_not_wait(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint32_t key = b->key;

	stand_still(true);
	post_flush(a, key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	settle(w);
	await_writes(1);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_MR, key));
	reconnect(w, b, a);
	reconnect(w, a, b);
	give_rights(w, b);
	/* This one waits behind the other, which the medium is at still. */
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf + 4096, 4096);
	expect_wait(w, a);
	stand_still(false);
	await_flush(w, a, SKUA_CQE_SUCCESS);
	assert_null(poll_cq(a));
	assert_true(reached(at(b, b->buf + 4096), 4096));

	/* One that was not begun is not begun any more. */
	stand_still(true);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 1);
	settle(w);
	await_writes(3);
	reconnect(w, b, a);
	reconnect(w, a, b);
	give_rights(w, b);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 1);
	settle(w);
	must(w, b, object_cmd(SKUA_CMD_DESTROY_QP, b->qpn));
	stand_still(false);
	usleep(20000);
	settle(w);
	assert_int_equal(writes(), 3);
}

/* The device goes while the medium writes, and while that has just ended. */
static void a_device_that_goes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	stand_still(true);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	settle(w);
	await_writes(1);
	skua_dev_reset(b->dev);
	settle(w);
	stand_still(false);
	usleep(20000);
	settle(w);
	assert_null(poll_cq(a));
}

/* A QP that goes to ERR meanwhile answers nothing. */
static void a_qp_in_error_does_not_answer(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	uint64_t sent;

	stand_still(true);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 4096);
	settle(w);
	await_writes(1);
	must(w, b, state_cmd(b->qpn, SKUA_QPS_ERR));
	sent = STAT(w, b, rdma_tx_packets);
	stand_still(false);
	usleep(20000);
	settle(w);
	assert_int_equal(STAT(w, b, rdma_tx_packets), sent);
	assert_null(poll_cq(a));
}

static void memory_that_goes(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(b);
	uint32_t key;

	mr.create_mr.access = htole32(RIGHTS);
	mr.create_mr.iova = htole64(EXTRA);
	mr.create_mr.pages = list(EXTRA, 4096);
	key = must(w, b, mr);
	unmap_extra(b);
	post_flush(a, key, SKUA_FLUSH_PERSISTENT, EXTRA, 4096);
	await_flush(w, a, SKUA_CQE_REM_OP_ERR);
	assert_int_equal(writes(), 0);
}

/* A REG_MR does not give the right to an MR of pieces. */
static void pieces_do_not_persist(struct world *w, struct node *n)
{
	uint64_t list_at = take(n, sizeof(struct skua_piece));
	struct { struct skua_wqe_ctrl ctrl; struct skua_wqe_reg_mr reg; } k = {
		.ctrl = { .opcode = SKUA_WQE_REG_MR, .flags = SKUA_WQE_SIGNALED, .nblocks = 1 },
		.reg = { .access = htole32(SKUA_ACCESS_FLUSH_PERSISTENT), .length = htole64(8),
			 .list = htole64(list_at), .npages = htole32(1) },
	};
	struct queues old = new_queues(n);
	struct skua_cmd cmd = create_qp_cmd(n);
	struct node *peer = n == w->n ? &w->n[1] : w->n;

	cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	n->qpn = must(w, n, cmd);
	reconnect(w, n, peer);
	*(struct skua_piece *)at(n, list_at) = (struct skua_piece){ .addr = htole64(n->buf), .length = htole32(8) };
	k.reg.key = htole32(must(w, n, free_mr_cmd(n, SKUA_PIECE_ENTRIES)));
	post_block(n, &k);
	expect_vendor(w, n, SKUA_CQE_REG_MR, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_ERR_WQE_FORMAT);
	reconnect(w, n, peer);
	k.reg.access = htole32(SKUA_ACCESS_FLUSH_GLOBAL);
	post_block(n, &k);
	expect(w, n, SKUA_CQE_REG_MR, SKUA_CQE_SUCCESS);
	use_queues(n, old);
	reconnect(w, n, peer);
	reconnect(w, peer, n);
}

static void rights_that_may_not_be(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd dm = CMD(SKUA_CMD_ALLOC_DM, .alloc_dm = { .length = htole64(4096) });
	uint32_t dmn = must(w, b, dm);

#define REFUSED(...) do {								\
	struct skua_cmd cmd = create_mr_cmd(b);						\
											\
	__VA_ARGS__;									\
	must(w, b, cmd);								\
	cmd.create_mr.access |= htole32(SKUA_ACCESS_FLUSH_PERSISTENT);			\
	assert_int_equal(command(w, b, &cmd), SKUA_CMD_BAD_PARAM);			\
} while (0)
	REFUSED(cmd.create_mr.type = SKUA_MR_DM, cmd.create_mr.dmn = htole32(dmn), cmd.create_mr.iova = 0,
		cmd.create_mr.pages = (struct skua_pagelist){ 0 }, cmd.create_mr.length = htole64(8));
	REFUSED(cmd.create_mr.type = SKUA_MR_PHYS, cmd.create_mr.iova = 0, cmd.create_mr.length = 0,
		cmd.create_mr.pages = (struct skua_pagelist){ 0 });
#undef REFUSED
	pieces_do_not_persist(w, b);
	/* Without the right, of the MR and of the QP. */
	must(w, b, modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
		.access = htole32(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_FLUSH_GLOBAL) }));
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 8);
	await_flush(w, a, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(writes(), 0);
}

/* Where memory is not persistent, the right does not exist, and no peer gets that FLUSH. */
static void not_offered(void **state)
{
	struct world *w = world_create(false);
	struct node *a = &w->n[0], *b = &w->n[1];
	struct skua_cmd mr = create_mr_cmd(b);

	(void)state;
	mr.create_mr.access = htole32(RIGHTS);
	assert_int_equal(command(w, b, &mr), SKUA_CMD_BAD_PARAM);
	mr = modify_cmd(b->qpn, SKUA_QP_ATTR_ACCESS, (struct skua_qp_attr){
		.access = htole32(SKUA_ACCESS_FLUSH_PERSISTENT) });
	assert_int_equal(command(w, b, &mr), SKUA_CMD_BAD_PARAM);
	post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf, 8);
	expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_REM_ACCESS_ERR);
	world_destroy(w);
}

/* With threads as skuad has them. */
static void many(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	/* The thread may have to wait for a processor, and its peer then waits often. */
	connect_patiently(w, a, b);
	for (uint32_t i = 0; i < 300; i++) {
		fill(a, 5000, i);
		post(a, SKUA_WQE_WRITE, 0, a->buf, 5000, b->buf + i * 1000, b->key, 0);
		post_flush(a, b->key, SKUA_FLUSH_PERSISTENT, b->buf + i * 1000, 5000);
		expect(w, a, SKUA_CQE_FLUSH, SKUA_CQE_SUCCESS);
		assert_memory_equal(at(b, b->buf + i * 1000), at(a, a->buf), 5000);
		assert_int_equal(writes(), i + 1);
	}
}

/* After a failure, the thread may still be at a write. */
static int end(void **state)
{
	stand_still(false);
	return teardown(state);
}

#define TEST(f, rules)	{ rules ": " #f, f, setup, end, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_range_reaches_the_medium, "FLU-1 FLU-2 FLU-5 FLU-13"),
		TEST(both_placements, "FLU-1 FLU-2"),
		TEST(all_of_an_mr, "FLU-2"),
		TEST(what_comes_behind_it, "FLU-13"),
		TEST(a_slow_medium, "FLU-13"),
		TEST(repeats_of_others, "FLU-13"),
		TEST(a_repeat_at_the_end, "FLU-13"),
		TEST(a_medium_that_fails, "FLU-15"),
		TEST(the_thread_starts_with_the_first_flush, "FLU-1"),
		TEST(a_thread_that_cannot_start, "FLU-15"),
		TEST(what_does_not_wait, "FLU-16 MEM-12"),
		TEST(a_device_that_goes, "FLU-16"),
		TEST(a_qp_in_error_does_not_answer, "FLU-16"),
		TEST(memory_that_goes, "FLU-15"),
		TEST(rights_that_may_not_be, "FLU-4 FLU-14"),
		{ "FLU-4 FLU-5: not_offered", not_offered, NULL, NULL, NULL },
		{ "FLU-13: many", many, setup_threads, end, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
