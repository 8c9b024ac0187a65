// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a post and its poll cost, in instructions: a child posts and polls, its parent single-steps
 * it and counts. Such a count does not depend on the machine's other work, as time does.
 *
 * It does depend on the compiler. The limits are for gcc at -O2, which make check uses; another
 * compiler only has its figures printed. Instructions of libc are not counted, because libc chooses
 * its memcpy() by the processor.
 */
#include "cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../op.h"
#include "../skua.h"
#include "fake.h"

#define BLOCKS	256
#define ROUNDS	64
#define QPN	5

enum step { OTHER, POST, POLL, STEPS };

static volatile enum step *current;	/* of the child, in memory that the parent reads */
static struct skua_qp *qp;
static struct skua_cq *cq;
static struct fake_cq dev;
static struct skua_info_page info = { .state = SKUA_INFO_ALIVE };
static uint64_t db_page[SKUA_PAGE_SIZE / 8];

static void setup_queues(void)
{
	qp = fake_zalloc(64, sizeof(*qp));
	cq = fake_zalloc(64, sizeof(*cq));
	fake_sq_init(&qp->sq, BLOCKS);
	fake_cq_init(&dev, &cq->ring, BLOCKS);
	skua_lock_init(&qp->sq_lock, true);
	skua_lock_init(&cq->lock, true);
	cq->info = &info;
	qp->db = db_page;
	qp->event_idx = true;
	qp->opcodes = skua_op_mask(1 << SKUA_F_RC, IBV_QPT_RC);
	qp->max_send_sge = 2;
	qp->max_inline = 64;
	qp->vqp.qp.qp_num = QPN;
	qp->vqp.qp.state = IBV_QPS_RTS;
	qp->sq.dbr->event = htole32(UINT32_MAX / 2);	/* a busy device asks for no doorbell */
}

static void post_and_poll(unsigned int send_flags)
{
	static char data[64];
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data), .lkey = 7 };
	struct ibv_send_wr wr = {
		.wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | send_flags,
		.wr.rdma = { .remote_addr = 0x1000, .rkey = 8 },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	uint32_t at = qp->sq.pi;

	*current = POST;
	skua_post_send(&qp->vqp.qp, &wr, &bad);
	*current = OTHER;
	fake_cq_write(&dev, (struct skua_cqe) {
		.qp_handle = htole64((uintptr_t)qp), .qpn = htole32(QPN), .opcode = SKUA_CQE_WRITE,
		.cookie = htole32(at & (BLOCKS - 1)), .sq_ci = htole32(qp->sq.pi),
	});
	*current = POLL;
	skua_poll_cq(&cq->vcq.cq, 1, &wc);
	*current = OTHER;
	if (wc.wr_id != 9)
		_exit(1);
}

/* Is the next instruction of @child one of this program? */
static bool is_ours(pid_t child)
{
#ifdef __x86_64__
	extern const char __executable_start[], etext[];
	uintptr_t next = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rip), NULL);

	return next >= (uintptr_t)__executable_start && next < (uintptr_t)etext;
#else
	return true;
#endif
}

/* Instructions in each step of a round, once all is warm. */
static void count(unsigned int send_flags, unsigned long steps[STEPS])
{
	int status, i;
	pid_t child;

	memset(steps, 0, STEPS * sizeof(*steps));
	current = mmap(NULL, sizeof(*current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(current != MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		setup_queues();
		post_and_poll(send_flags);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(2);
		raise(SIGSTOP);
		for (i = 0; i < ROUNDS; i++)
			post_and_poll(send_flags);
		_exit(0);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			kill(child, SIGKILL);
			fail_msg("the child died of signal %d", WSTOPSIG(status));
		}
		steps[*current] += is_ours(child);
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	munmap((void *)current, sizeof(*current));
	for (i = 0; i < STEPS; i++)
		steps[i] /= ROUNDS;
}

static void cost_is_at_most(unsigned int send_flags, unsigned long post, unsigned long poll)
{
	unsigned long steps[STEPS];

	count(send_flags, steps);
	print_message("post %lu, poll %lu instructions\n", steps[POST], steps[POLL]);
	assert_true(steps[POST] && steps[POLL]);
#if defined(__x86_64__) && !defined(__clang__)
	assert_true(steps[POST] <= post);
	assert_true(steps[POLL] <= poll);
#endif
}

static void test_cost_of_a_write_of_64_bytes(void **state)
{
	cost_is_at_most(0, 170, 80);
}

static void test_cost_of_64_bytes_inline(void **state)
{
	cost_is_at_most(IBV_SEND_INLINE, 217, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_of_a_write_of_64_bytes),
		cmocka_unit_test(test_cost_of_64_bytes_inline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
