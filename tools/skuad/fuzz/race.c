// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "fuzz/race.h"

#include <string.h>

#define SEEN	1024

static struct race now;

/* Words of 8 bytes that were loaded, by where they are in the memory; so an input does the same wherever that lies. */
static struct { size_t word; uint64_t step; } seen[SEEN];
static uint64_t this_step = 1;

void race_start(const struct race *race)
{
	now = *race;
}

void race_stop(void)
{
	now.times = 0;
}

void race_step(void)
{
	this_step++;
}

/* The @size bytes at @p, which are to be loaded for the second time. */
static void change(uint8_t *p, size_t size)
{
	uint64_t value = 0;

	if (now.skip) {
		now.skip--;
		return;
	}
	now.times--;
	memcpy(&value, p, size);
	switch (now.how) {
	case RACE_ADD:
		value += now.value;
		break;
	case RACE_XOR:
		value ^= now.value;
		break;
	default:
		value = now.value;
	}
	memcpy(p, &value, size);
}

static void loads(const void *p, size_t size)
{
	size_t at = (uintptr_t)p - (uintptr_t)now.mem, word = at / 8;

	if (!now.times || at >= now.size || size > now.size - at)
		return;
	if (seen[word % SEEN].word == word && seen[word % SEEN].step == this_step) {
		change(now.mem + at, size);
		return;
	}
	seen[word % SEEN].word = word;
	seen[word % SEEN].step = this_step;
}

/* Clang's calls; it has one for 16 bytes, too, but no word of the device's is so long. */
void __sanitizer_cov_load1(uint8_t *p);
void __sanitizer_cov_load2(uint16_t *p);
void __sanitizer_cov_load4(uint32_t *p);
void __sanitizer_cov_load8(uint64_t *p);

void __sanitizer_cov_load1(uint8_t *p)
{
	loads(p, sizeof(*p));
}

void __sanitizer_cov_load2(uint16_t *p)
{
	loads(p, sizeof(*p));
}

void __sanitizer_cov_load4(uint32_t *p)
{
	loads(p, sizeof(*p));
}

void __sanitizer_cov_load8(uint64_t *p)
{
	loads(p, sizeof(*p));
}
