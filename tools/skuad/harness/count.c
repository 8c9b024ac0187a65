// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Called by what is built to be counted; on each thread for itself. */
#include "harness/work.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t work_most = WORK_MOST;

static _Thread_local uint64_t done;

uint64_t work_done(void)
{
	return done;
}

/* Ends a fuzzer as well as a test. */
void work_check(uint64_t before)
{
	uint64_t work = work_done() - before;

	if (work <= work_most)
		return;
	fprintf(stderr, "a round of the engine is too long: %llu of %llu\n", (unsigned long long)work,
		(unsigned long long)work_most);
	abort();
}

#ifdef __clang__
void __cyg_profile_func_enter(void *fn, void *caller);
void __cyg_profile_func_exit(void *fn, void *caller);

void __cyg_profile_func_enter(void *fn, void *caller)
{
	(void)fn;
	(void)caller;
	done++;
}

void __cyg_profile_func_exit(void *fn, void *caller)
{
	(void)fn;
	(void)caller;
}
#else
void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	done++;
}
#endif
