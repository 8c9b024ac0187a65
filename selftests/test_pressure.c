// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory pressure: programs take all memory there is, until the kernel ends them, while objects come and go, data
 * moves, and frames are sent. It needs a guest with little memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define ROUNDS	3
#define BUFFER	(1u << 20)
#define LEAST	(32u << 10)	/* bytes that are taken at a time */

FIXTURE(pressure) {
	struct side s[2];
	pid_t ping;
};

FIXTURE_SETUP(pressure)
{
	ASSERT_EQ(0, pair_open(self->s));
	self->ping = fork();
	ASSERT_GE(self->ping, 0);
	if (!self->ping) {
		/* It sends the next when the last is answered, or 10 ms have passed. Each takes several frames. */
		execlp("ping", "ping", "-q", "-f", "-s", "6000", "192.0.2.2", NULL);
		_exit(127);
	}
}

/* Nothing is missed afterwards: neither data nor frames. */
FIXTURE_TEARDOWN(pressure)
{
	int status;

	EXPECT_EQ(0, kill(self->ping, SIGINT));
	EXPECT_EQ(self->ping, waitpid(self->ping, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, system("ping -q -c 50 -i 0.01 -s 6000 192.0.2.2 | grep ' 0% packet loss'"));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* Bytes that can be had without the end of a program. -1: it is not known. */
static long available(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %ld kB", &kib) != 1)
			kib = -1;
	if (file)
		fclose(file);
	return kib < 0 ? kib : kib << 10;
}

/* How often somebody who asked for memory had to take it from others. -1: it is not known. */
static long stalls(void)
{
	FILE *file = fopen("/proc/vmstat", "r");
	long sum = -1, n;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "allocstall_%*s %ld", &n) == 1)
			sum = sum < 0 ? n : sum + n;
	if (file)
		fclose(file);
	return sum;
}

/* It takes an eighth of what is left each time, at least LEAST. So there is next to nothing left most of the time. */
static void take_all(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);

	/* The kernel ends this program before all others. */
	if (fd < 0 || write(fd, "1000", 4) != 4)
		_exit(1);
	for (;;) {
		long left = available(), size = left / 8 > LEAST ? left / 8 : LEAST;
		char *more = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (left < 0 || more == MAP_FAILED)
			_exit(2);
		memset(more, 1, size);
		usleep(5000);
	}
}

/* Memory of one's own is registered, is written by the peer, and goes; so does a QP with its CQ. NULL: all was well. */
static const char *objects_come_and_go(struct side s[2], uint8_t seed)
{
	struct side other = s[1];
	const char *wrong = NULL;
	uint8_t *bytes = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		return "mmap";
	other.mem = bytes;
	other.cq = ibv_create_cq(s[1].context, 2 * PAIR_WRS, NULL, NULL, 0);
	other.mr = ibv_reg_mr(s[1].pd, bytes, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	other.qp = other.cq ? side_create_qp(&other) : NULL;
	if (!other.mr || !other.qp) {
		wrong = "no MR, CQ or QP";
	} else {
		struct ibv_sge sge = { (uintptr_t)s[0].mem, BUFFER, s[0].mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)bytes, other.mr->rkey },
		};

		pair_fill(s[0].mem, BUFFER, seed);
		wrong = side_sends(&s[0], &wr);
		if (!wrong && memcmp(bytes, s[0].mem, BUFFER))
			wrong = "data";
	}
	if ((other.qp && ibv_destroy_qp(other.qp)) || (other.mr && ibv_dereg_mr(other.mr)) ||
	    (other.cq && ibv_destroy_cq(other.cq)))
		wrong = "destroy";
	munmap(bytes, BUFFER);
	return wrong;
}

/* A round takes more than three minutes in the debug kernel. */
TEST_F_TIMEOUT(pressure, all_memory_is_taken, 1800)
{
	uint8_t seed = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		unsigned int done = 0, scarce = 0;
		pid_t taker = fork();
		int status;

		ASSERT_GE(taker, 0);
		if (!taker)
			take_all();
		while (!waitpid(taker, &status, WNOHANG)) {
			long before = stalls();

			ASSERT_GE(before, 0);
			WELL(objects_come_and_go(self->s, seed++));
			ASSERT_TRUE(pair_transfer(self->s));
			done++;
			scarce += stalls() > before;
		}
		TH_LOG("%u times, %u of them while memory was taken from others", done, scarce);
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		EXPECT_GT(scarce, 0);
	}
}

TEST_HARNESS_MAIN
