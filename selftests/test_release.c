// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When the driver gives memory back: the device is asked to lose the command that ends its use
 * (skuactl inject), so that there is time to look. Leaves the NICs as they were.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

/* kB of this process's memory that devices have pinned; -1: the kernel does not say. */
static long pinned(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long kb = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	if (file)
		fclose(file);
	return kb;
}

/* Has skua0 been reset since the drivers enabled it, or not? */
static bool is_enabled(void)
{
	return !system("skuactl devices | grep -q '^skua0 .* enabled '");
}

static void *dereg(void *arg)
{
	return (void *)(long)ibv_dereg_mr(arg);
}

/*
 * MEM-15: pinned memory stays pinned until the device has said that it is done with it, or was
 * reset because it says nothing.
 */
TEST(what_is_pinned_stays_so_until_the_device_is_done)
{
	long before, with, now;
	bool enabled;
	struct side s;
	pthread_t thread;

	ASSERT_EQ(0, side_open(&s, "skua_0"));
	with = pinned();
	ASSERT_EQ(0, ibv_dereg_mr(s.mr));
	before = pinned();
	ASSERT_EQ(with - before, PAIR_MEM >> 10);
	s.mr = ibv_reg_mr(s.pd, s.mem, PAIR_MEM, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, s.mr);
	ASSERT_EQ(with, pinned());

	ASSERT_EQ(0, nic_stays_dead());
	ASSERT_EQ(0, system("skuactl inject skua0 command-timeout"));
	ASSERT_EQ(0, pthread_create(&thread, NULL, dereg, s.mr));
	s.mr = NULL;
	for (unsigned int i = 0; i < 3; i++) {
		sleep(1);
		EXPECT_EQ(with, pinned());
		EXPECT_TRUE(is_enabled());
	}
	/* What it was once given back it stays: asking later whether there was a reset is no race. */
	do {
		usleep(10000);
		now = pinned();
		enabled = is_enabled();
	} while (now == with);
	EXPECT_FALSE(enabled);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(before, pinned());
	side_close(&s);

	/* A namespace's own sysfs has no devices. */
	ASSERT_EQ(0, system("echo 1 >/proc/1/root/sys/class/infiniband/skua_0/device/reset"));
	for (unsigned int i = 0; i < 100 && side_open(&s, "skua_0"); i++)
		usleep(100000);
	ASSERT_NE(NULL, s.context);
	side_close(&s);
}

TEST_HARNESS_MAIN
