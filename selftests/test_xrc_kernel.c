// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * XRC SRQs of the kernel: this program's QP of skua_0 sends to SRQs of skua_1 that skua_selftest.ko has, which
 * looks at what arrives (kernel/xrc_srq.c). Rules: Documentation/manual/xrc.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "xrc.h"

#define MODULE		"/sys/kernel/debug/skua_selftest/xrc"
#define SRQS		2
#define SLOT		4096u		/* of each receive */

static const uint32_t sizes[] = { 0, 1, 64, 1023, 1024, 1025, 4095, SLOT };

#define SIZES		(sizeof(sizes) / sizeof(sizes[0]))

FIXTURE(xrc_kernel) {
	struct side a, b;		/* of the second, the address */
	struct ibv_qp *initiator;
	uint32_t target, srqns[SRQS], key;	/* the kernel's */
	uint32_t sent[SRQS];		/* messages to each */
};

/* The module does a step. 0 or an errno. */
__attribute__((format(printf, 1, 2)))
static int step(const char *format, ...)
{
	int fd = open(MODULE, O_WRONLY), length, err;
	char text[64];
	va_list args;

	if (fd < 0)
		return errno;
	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	err = write(fd, text, (size_t)length) == length ? 0 : errno;
	close(fd);
	return err;
}

/* The numbers of the kernel's objects; what it says of the last step goes to @said, of 200 bytes. */
static int numbers(FIXTURE_DATA(xrc_kernel) *self, char *said)
{
	FILE *file = fopen(MODULE, "r");
	int n;

	if (!file)
		return errno;
	n = fscanf(file, "%u %u %u %u %199[^\n]", &self->target, &self->srqns[0], &self->srqns[1], &self->key, said);
	fclose(file);
	return n == 5 ? 0 : EPROTO;
}

#define STEP(...) do {							\
	ASSERT_EQ(0, step(__VA_ARGS__)) {				\
		char said_[200] = "";					\
									\
		numbers(self, said_);					\
		TH_LOG("%s", said_);					\
	}								\
} while (0)

/* To the target that is there now. */
#define CONNECT() do {							\
	struct ibv_qp_attr reset_ = { .qp_state = IBV_QPS_RESET };	\
	char said_[200];						\
									\
	ASSERT_EQ(0, numbers(self, said_));				\
	ASSERT_EQ(0, ibv_modify_qp(self->initiator, &reset_, IBV_QP_STATE)); \
	STEP("connect 0 %u", self->initiator->qp_num);			\
	ASSERT_EQ(0, connect_initiator(self->initiator, &self->a, &self->b, self->target)); \
} while (0)

FIXTURE_SETUP(xrc_kernel)
{
	/* A network namespace has a /sys of its own, without what was mounted there. */
	if (mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL))
		ASSERT_EQ(EBUSY, errno);
	ASSERT_EQ(0, system("modprobe skua_selftest"));
	ASSERT_EQ(0, side_open(&self->a, "skua_0"));
	ASSERT_EQ(0, side_open(&self->b, "skua_1"));
	self->initiator = make_initiator(&self->a);
	ASSERT_NE(NULL, self->initiator);
	STEP("open");
	CONNECT();
}

FIXTURE_TEARDOWN(xrc_kernel)
{
	EXPECT_EQ(0, ibv_destroy_qp(self->initiator));
	side_close(&self->b);
	side_close(&self->a);
	EXPECT_EQ(0, system("rmmod skua_selftest"));
}

/* The next message for an SRQ. Its bytes tell its number there, and immediate data its size. */
static int post_message(FIXTURE_DATA(xrc_kernel) *self, unsigned int srq, enum ibv_wr_opcode opcode, uint32_t size)
{
	uint8_t *from = self->a.mem + (srq * PAIR_WRS + self->sent[srq] % PAIR_WRS) * SLOT;
	struct ibv_sge sge = { (uintptr_t)from, size, self->a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(size), .qp_type.xrc.remote_srqn = self->srqns[srq],
	};

	if (opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = self->key;
	pair_fill(from, size, (uint8_t)self->sent[srq]++);
	return ibv_post_send(self->initiator, &wr, &bad);
}

#define SENT() do {							\
	struct ibv_wc wc_;						\
									\
	ASSERT_TRUE(side_wait(&self->a, &wc_, 20));			\
	ASSERT_EQ(IBV_WC_SUCCESS, wc_.status);				\
} while (0)

#define SEND(srq, size) do {						\
	ASSERT_EQ(0, post_message(self, srq, IBV_WR_SEND, size));	\
	SENT();								\
} while (0)

/* XRC-12 */
TEST_F(xrc_kernel, messages_of_all_sizes_arrive)
{
	for (unsigned int i = 0; i < 4 * SIZES; i++) {
		unsigned int srq = i / 2 % SRQS;
		uint32_t size = sizes[i % SIZES];

		SEND(srq, size);
		STEP("receive %u %u", srq, size);
		ASSERT_EQ(0, post_message(self, srq, IBV_WR_SEND_WITH_IMM, size));
		SENT();
		STEP("receive_imm %u %u", srq, size);
	}
	STEP("nothing");
}

/* XRC-10, XRC-12 */
TEST_F(xrc_kernel, a_message_invalidates_a_key)
{
	char said[200];

	for (unsigned int i = 0; i < 4; i++) {
		STEP("register");
		ASSERT_EQ(0, numbers(self, said));
		ASSERT_EQ(0, post_message(self, i % SRQS, IBV_WR_SEND_WITH_INV, 100));
		SENT();
		STEP("receive_inv %u 100", i % SRQS);
	}
}

/* Each entry of a full SRQ is used some times, and there is one completion of each message. */
TEST_F(xrc_kernel, they_complete_in_order)
{
	for (unsigned int round = 0; round < 6; round++) {
		for (unsigned int i = 0; i < PAIR_WRS; i++)
			ASSERT_EQ(0, post_message(self, i % 3 % SRQS, IBV_WR_SEND, i * 100));
		for (unsigned int i = 0; i < PAIR_WRS; i++)
			SENT();
		for (unsigned int i = 0; i < PAIR_WRS; i++)
			STEP("receive %u %u", i % 3 % SRQS, i * 100);
		STEP("nothing");
	}
}

TEST_F(xrc_kernel, a_full_srq_takes_no_more)
{
	STEP("full 0");
	SEND(0, 100);
	STEP("receive 0 100");
	STEP("full 0");
}

TEST_F(xrc_kernel, the_cq_is_armed)
{
	for (unsigned int i = 0; i < 5; i++) {
		STEP("arm");
		SEND(i % SRQS, 100);
		STEP("fired");
		STEP("receive %u 100", i % SRQS);
	}
}

/* SRQ-8 */
TEST_F(xrc_kernel, a_limit_raises_its_event)
{
	for (unsigned int i = 0; i < 3; i++) {
		STEP("limit 1");
		SEND(1, 100);
		STEP("limited 1");
		STEP("receive 1 100");
	}
}

/* XRC-12: what was received stays, and names no QP; then another target serves the same SRQs. */
TEST_F(xrc_kernel, a_target_goes_before_its_completions)
{
	for (unsigned int i = 0; i < 6; i++)
		SEND(i % SRQS, 100 + i);
	STEP("lose_target");
	CONNECT();
	SEND(0, 200);
	for (unsigned int i = 0; i < 6; i++)
		STEP("receive_late %u %u", i % SRQS, 100 + i);
	STEP("receive 0 200");
	STEP("nothing");
}

/* XRC-12, XRC-14: its completions go with an SRQ, and no others. */
TEST_F(xrc_kernel, an_srq_goes_with_its_completions)
{
	uint32_t srqn = self->srqns[0];
	char said[200];

	for (unsigned int i = 0; i < 6; i++)
		SEND(i % SRQS, 100 + i);
	STEP("lose_srq 0");
	self->sent[0] = 0;
	ASSERT_EQ(0, numbers(self, said));
	ASSERT_NE(srqn, self->srqns[0]);
	SEND(0, 200);
	for (unsigned int i = 1; i < 6; i += 2)
		STEP("receive 1 %u", 100 + i);
	STEP("receive 0 200");
	STEP("nothing");
}

/* The CQ is that of a QP with an RQ, too. */
TEST_F(xrc_kernel, a_qp_goes_that_has_the_same_cq)
{
	for (unsigned int i = 0; i < 4; i++) {
		SEND(i % SRQS, 100);
		STEP("beside");
	}
	for (unsigned int i = 0; i < 4; i++)
		STEP("receive %u 100", i % SRQS);
	STEP("nothing");
}

/* XRC-1, XRC-2 */
TEST_F(xrc_kernel, what_is_used_is_busy)
{
	STEP("busy");
	SEND(1, 100);
	STEP("receive 1 100");
}

TEST_HARNESS_MAIN
