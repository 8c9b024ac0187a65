/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each verb with each kind of wrong argument: a table for each, a row for each argument. A row gives
 * the errno (or the completion) that the specification or, where it leaves this open, other
 * drivers give. After every row the process goes on: it transfers data and compares them. The tables
 * stand in test_bad_*.c, by object; here is what these share.
 *
 * What the provider refuses by itself is given to the kernel in test_bad_commands.c.
 */
#ifndef SELFTESTS_BAD_H
#define SELFTESTS_BAD_H

#include <errno.h>

#include "pair.h"
#include "rows.h"

FIXTURE(bad) {
	struct side s[2];
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(bad)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &self->attr));
}

FIXTURE_TEARDOWN(bad)
{
	pair_close(self->s);
}

/* errno of a call that makes something; 0 if it did, and what it made is unmade. */
#define MADE(make, unmake) ({						\
	typeof(make) made_;						\
									\
	errno = 0;							\
	made_ = (make);							\
	made_ ? (unmake(made_), 0) : errno;				\
})

#endif
