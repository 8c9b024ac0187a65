// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Allocations that fail, one after the other, in each verb: the verb fails or does without, and
 * works the next time. Needs a kernel with fault injection (lab run --kernel debug).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define MOST 3000	/* allocations of one verb: more, and something repeats itself */

/* What each step makes and works on. */
static struct side side;
static struct ibv_qp *qp;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_comp_channel *channel;

/* Of this thread. Open all the time, since opening allocates, too. */
static int nth_fd;

static int fail_nth(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	return pwrite(nth_fd, text, (size_t)len, 0) == len ? 0 : -1;
}

/* What is left to be counted: 0 if the allocation failed. */
static int nth_left(void)
{
	char text[16] = "";

	return pread(nth_fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : -1;
}

static int set_knob(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY), ok = fd >= 0 && write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return ok ? 0 : -1;
}

static int do_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (struct ibv_device **d = list; d && *d && !context; d++)
		context = ibv_open_device(*d);
	if (list)
		ibv_free_device_list(list);
	return context ? ibv_close_device(context) : -1;
}

static int do_pd(void) { return (pd = ibv_alloc_pd(side.context)) ? 0 : -1; }
static void undo_pd(void) { ibv_dealloc_pd(pd); }
static int do_channel(void) { return (channel = ibv_create_comp_channel(side.context)) ? 0 : -1; }
static void undo_channel(void) { ibv_destroy_comp_channel(channel); }
static int do_cq(void) { return (cq = ibv_create_cq(side.context, 100, NULL, side.channel, 0)) ? 0 : -1; }
static void undo_cq(void) { ibv_destroy_cq(cq); }

static int do_mr(void)
{
	mr = ibv_reg_mr(side.pd, side.mem, 1 << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return mr ? 0 : -1;
}

static void undo_mr(void) { ibv_dereg_mr(mr); }
static int do_qp(void) { return (qp = side_create_qp(&side)) ? 0 : -1; }
static void undo_qp(void) { ibv_destroy_qp(qp); }

/* The transitions, each on a QP that is where they begin. */
static int do_connect(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int err = qp_to_init(qp, IBV_ACCESS_REMOTE_WRITE);

	err = err ? err : qp_to_rtr(qp, &side, &side, qp->qp_num);
	err = err ? err : qp_to_rts(qp, 10, 3, 3);
	if (!err)
		return ibv_modify_qp(qp, &reset, IBV_QP_STATE);
	/* Whatever it was: back to where the next one begins. */
	fail_nth(0);
	ibv_modify_qp(qp, &reset, IBV_QP_STATE);
	return err;
}

static int do_query(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_device_attr device;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || ibv_query_port(side.context, 1, &port) ||
	       ibv_query_device(side.context, &device);
}

static const struct {
	const char *name;
	int (*run)(void);
	void (*undo)(void);
} verbs[] = {
	{ "open device", do_open, NULL },
	{ "alloc PD", do_pd, undo_pd },
	{ "create channel", do_channel, undo_channel },
	{ "create CQ", do_cq, undo_cq },
	{ "register MR", do_mr, undo_mr },
	{ "create QP", do_qp, undo_qp },
	{ "modify QP", do_connect, NULL },
	{ "query", do_query, NULL },
};

FIXTURE(failures) {};
FIXTURE_SETUP(failures) { }
FIXTURE_TEARDOWN(failures) { }

/* Hundreds of attempts, under the slowest of kernels. */
TEST_F_TIMEOUT(failures, every_allocation_of_every_verb, 900)
{
	/* A network namespace has a /sys of its own, without what was mounted there. */
	ASSERT_TRUE(!mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) || errno == EBUSY);
	ASSERT_EQ(0, set_knob("/sys/kernel/debug/failslab/ignore-gfp-wait", "0"));
	ASSERT_EQ(0, set_knob("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "0"));
	ASSERT_EQ(0, set_knob("/sys/kernel/debug/failslab/verbose", "0"));
	ASSERT_EQ(0, set_knob("/sys/kernel/debug/fail_page_alloc/verbose", "0"));
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	ASSERT_GE(nth_fd, 0);
	ASSERT_EQ(0, side_open(&side, "skua_0"));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		int n, left = 0, err = -1;

		if (verbs[i].run == do_connect)
			ASSERT_NE(NULL, qp = side_create_qp(&side));
		for (n = 1; n < MOST; n++) {
			ASSERT_EQ(0, fail_nth(n));
			err = verbs[i].run();
			left = nth_left();
			ASSERT_EQ(0, fail_nth(0));
			if (!err && verbs[i].undo)
				verbs[i].undo();
			if (left > 0)
				break;
		}
		ASSERT_GT(left, 0);
		ASSERT_EQ(0, err) {
			TH_LOG("%s fails without a fault", verbs[i].name);
		}
		TH_LOG("%s: %d allocations failed", verbs[i].name, n - 1);
	}
	undo_qp();
	side_close(&side);
}

TEST_HARNESS_MAIN
