/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tables of wrong arguments: each row has a name, and gives an errno. */
#ifndef SELFTESTS_ROWS_H
#define SELFTESTS_ROWS_H

#include <string.h>

#include "pair.h"

#define EACH(row, rows)							\
	(typeof(&(rows)[0]) row = rows; row < (rows) + sizeof(rows) / sizeof((rows)[0]); row++)

/* It gave what it should, and did no harm: the fixture's pair goes on. */
#define GAVE(expected, seen, row) do {					\
	int seen_ = (seen);						\
									\
	EXPECT_EQ(expected, seen_) {					\
		TH_LOG("%s: %s", (row)->name, strerror(seen_));		\
	}								\
	ASSERT_TRUE(pair_transfer(self->s)) {				\
		TH_LOG("transfer after: %s", (row)->name);		\
	}								\
} while (0)

#endif
