/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What all fuzzers share. To be included once in a program.
 *
 * An input is a sequence of records of one size: a verb, and operands that the verb takes as it
 * likes. So every input means something, and mutations are those of a test's author: a step more,
 * a step less, the same again, another operand.
 *
 * A fuzzer brings fuzz_run(), which plays the steps, and fuzz_seeds(), which names the inputs to
 * begin with; "PROGRAM --seeds=DIR" writes them. Numbers that the device draws are the same in
 * every run, so that an input that failed fails again.
 */
#ifndef SKUAD_FUZZ_FUZZ_H
#define SKUAD_FUZZ_FUZZ_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

struct step {
	uint8_t verb, a, b, c;
	uint32_t n[3];
	uint64_t v[2];
	uint8_t bytes[32];
};

static_assert(sizeof(struct step) == 64, "a record of an input");

#define FUZZ_MAX_STEPS	48

/* The fuzzer's own. */
static void fuzz_run(const struct step *steps, unsigned int n);
static void fuzz_seeds(void);

/* libFuzzer's. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *x, size_t nx, const uint8_t *y, size_t ny,
				 uint8_t *out, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* What must hold, whatever the input. */
#define CHECK(cond) do {						\
	if (!(cond)) {							\
		fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
		abort();						\
	}								\
} while (0)

static uint64_t fuzz_random_state;

static inline uint32_t fuzz_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

/* In place of libc's. */
ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	uint8_t *p = buf;

	(void)flags;
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)fuzz_random(&fuzz_random_state);
	return (ssize_t)len;
}

static const char *fuzz_seed_dir;

static inline void fuzz_seed(const char *name, const struct step *steps, unsigned int n)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", fuzz_seed_dir, name);
	f = fopen(path, "wb");
	if (!f || fwrite(steps, sizeof(*steps), n, f) != n || fclose(f)) {
		perror(path);
		exit(1);
	}
}

#define FUZZ_SEED(name, ...) do {					\
	const struct step steps_[] = { __VA_ARGS__ };			\
									\
	fuzz_seed(name, steps_, sizeof(steps_) / sizeof(steps_[0]));	\
} while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char option[] = "--seeds=";

	if (*argc != 2 || strncmp((*argv)[1], option, strlen(option)))
		return 0;
	fuzz_seed_dir = (*argv)[1] + strlen(option);
	fuzz_seeds();
	exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step steps[FUZZ_MAX_STEPS];
	unsigned int n = (unsigned int)(size / sizeof(*steps));

	if (n > FUZZ_MAX_STEPS)
		n = FUZZ_MAX_STEPS;
	if (!n)
		return -1;
	memcpy(steps, data, n * sizeof(*steps));
	fuzz_random_state = 1;
	fuzz_run(steps, n);
	return 0;
}

/* Another operand: mostly a small one, or one a little off. */
static inline void fuzz_change(struct step *s, uint64_t *rnd)
{
	uint8_t *p = (uint8_t *)s;
	uint32_t r = fuzz_random(rnd);

	switch (r % 8) {
	case 0:
		p[fuzz_random(rnd) % 4] = (uint8_t)fuzz_random(rnd);
		break;
	case 1:
		p[fuzz_random(rnd) % 4] = (uint8_t)fuzz_random(rnd) % 8;
		break;
	case 2:
		s->n[fuzz_random(rnd) % 3] = fuzz_random(rnd) % 16;
		break;
	case 3:
		s->n[fuzz_random(rnd) % 3] += fuzz_random(rnd) % 3 - 1;
		break;
	case 4:
		p[fuzz_random(rnd) % sizeof(*s)] ^= (uint8_t)(1 << fuzz_random(rnd) % 8);
		break;
	case 5:
		p[32 + fuzz_random(rnd) % 32] = (uint8_t)fuzz_random(rnd) % 16;
		break;
	case 6:
		LLVMFuzzerMutate(p + 4, 28, 28);
		break;
	default:
		LLVMFuzzerMutate(p, sizeof(*s), sizeof(*s));
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	unsigned int n = (unsigned int)(size / sizeof(struct step)), i, j;
	unsigned int most = (unsigned int)(max / sizeof(struct step));
	struct step steps[FUZZ_MAX_STEPS + 1], one = { 0 };
	uint64_t rnd = seed;

	if (n > FUZZ_MAX_STEPS)
		n = FUZZ_MAX_STEPS;
	if (most > FUZZ_MAX_STEPS)
		most = FUZZ_MAX_STEPS;
	memcpy(steps, data, n * sizeof(one));
	i = n ? fuzz_random(&rnd) % n : 0;
	j = n ? fuzz_random(&rnd) % n : 0;
	switch (n ? fuzz_random(&rnd) % 8 : 0) {
	case 0:
	case 1:		/* a step more: new, or like another */
		if (n && fuzz_random(&rnd) % 2)
			one = steps[j];
		fuzz_change(&one, &rnd);
		if (n < most) {
			memmove(&steps[i + 1], &steps[i], (n - i) * sizeof(one));
			n++;
		}
		steps[i] = one;
		break;
	case 2:		/* one less */
		if (n > 1)
			memmove(&steps[i], &steps[i + 1], (--n - i) * sizeof(one));
		break;
	case 3:
		one = steps[i];
		steps[i] = steps[j];
		steps[j] = one;
		break;
	default:
		for (j = 0; j <= seed % 3; j++)
			fuzz_change(&steps[i], &rnd);
	}
	memcpy(data, steps, n * sizeof(one));
	return n * sizeof(one);
}

/* The beginning of one and the end of another. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *x, size_t nx, const uint8_t *y, size_t ny,
				 uint8_t *out, size_t max, unsigned int seed)
{
	const size_t one = sizeof(struct step);
	size_t head, tail;
	uint64_t rnd = seed;

	if (max > FUZZ_MAX_STEPS * one)
		max = FUZZ_MAX_STEPS * one;
	head = fuzz_random(&rnd) % (nx / one + 1) * one;
	tail = fuzz_random(&rnd) % (ny / one + 1) * one;
	if (head > max)
		head = max / one * one;
	if (tail > max - head)
		tail = (max - head) / one * one;
	memcpy(out, x, head);
	memcpy(out + head, y + ny / one * one - tail, tail);
	return head + tail;
}

#endif /* SKUAD_FUZZ_FUZZ_H */
