/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host that changes memory between two fetches of the device (MEM-8).
 *
 * A word that the device loads once is the same to it whenever the host wrote it. So only a word that it loads a second
 * time, in the same step of the input, can betray it: then the host has the change made just before that second load.
 * A second thread would have to hit that moment, and an input that failed would not fail again. Here the input itself
 * says which of these loads finds another value, and which.
 *
 * In the fuzzers' build clang calls a function before each load of the device (-fsanitize-coverage=trace-loads); other
 * builds know nothing of it. What a memcpy() that remains a call reads is not seen.
 */
#ifndef SKUAD_FUZZ_RACE_H
#define SKUAD_FUZZ_RACE_H

#include <stddef.h>
#include <stdint.h>

enum race_how {
	RACE_SET, RACE_ADD, RACE_XOR,
	NUM_RACE_HOWS
};

struct race {
	uint8_t *mem;			/* that the host changes */
	size_t size;
	enum race_how how;
	uint64_t value;
	uint32_t skip;			/* second loads to leave alone first */
	uint32_t times;			/* second loads to change then */
};

/* From now on, in place of the race before. */
void race_start(const struct race *race);
void race_stop(void);

/* A step of the input begins: nothing has been loaded in it. */
void race_step(void);

#endif /* SKUAD_FUZZ_RACE_H */
