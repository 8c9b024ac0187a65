/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much an engine does in one round, in which nobody else gets a turn. It is counted, not timed, so that a round
 * does as much on each machine: builds with sanitizers count the basic blocks that a thread runs (the fuzzers its
 * function calls), wherever they are, so that no loop is forgotten.
 *
 * engine_step(), as tests call it, ends the test that makes a round longer than work_most. The most is done where
 * packets are made of a turn's bytes, and impairments hand over what they have held back.
 */
#ifndef SKUAD_HARNESS_WORK_H
#define SKUAD_HARNESS_WORK_H

#include <stdint.h>

/* In function calls five times what a round did at most, 10,785, in all seeds and a minute of each fuzzer. */
#ifdef __clang__
#define WORK_MOST	50000
#else
#define WORK_MOST	1000000
#endif
#define WORK_OF_STEPS	200000	/* where there are no packets */

extern uint64_t work_most;

/* On this thread, so far; 0: not counted. */
uint64_t work_done(void);

/* Since work_done() was @before there was one round at most. */
void work_check(uint64_t before);

#endif /* SKUAD_HARNESS_WORK_H */
