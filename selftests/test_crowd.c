// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hundred programs at once: each has both NICs, and moves data from one to the other while all others do.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define PROGRAMS	100
#define TRANSFERS	10

FIXTURE(crowd) {
	struct side s[2];
};

FIXTURE_SETUP(crowd)
{
	ASSERT_EQ(0, pair_open(self->s));
}

/* Nothing of the others is missed. */
FIXTURE_TEARDOWN(crowd)
{
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* One of many: it tells that it is ready, and begins when nobody has the other end of @go any more. */
static int one_of_many(int ready, int go)
{
	struct side s[2];
	char byte;

	if (pair_open(s) || write(ready, "", 1) != 1 || read(go, &byte, 1))
		return 1;
	for (unsigned int i = 0; i < TRANSFERS; i++)
		if (!pair_transfer(s))
			return 2;
	pair_close(s);
	return 0;
}

TEST_F_TIMEOUT(crowd, a_hundred_programs, 300)
{
	pid_t pids[PROGRAMS];
	int ready[2], go[2], status;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		pids[i] = fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i]) {
			close(go[1]);
			_exit(one_of_many(ready[1], go[0]));
		}
	}
	/* So that one that fails before it is ready does not leave the others waiting. */
	close(ready[1]);
	for (unsigned int i = 0; i < PROGRAMS; i++)
		EXPECT_EQ(1, read(ready[0], &byte, 1));
	close(go[1]);
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	close(ready[0]);
	close(go[0]);
}

TEST_HARNESS_MAIN
