// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The log. Limits are kept by level in one atomic word, the second in its high half and the
 * lines of that second in its low half, so that no thread ever waits for another here.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINES_PER_SECOND	100
#define LINE_MAX_BYTES		512

static _Atomic enum log_level max_level = LOG_LEVEL_INFO;
static _Atomic uint64_t window[LOG_LEVEL_DEBUG];	/* second << 32 | lines in it */

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return atomic_load_explicit(&max_level, memory_order_relaxed);
}

/* May one more line be written now? @left_out: those of an earlier second that were not. */
static int log_admit(enum log_level level, uint32_t *left_out)
{
	struct timespec ts;
	uint64_t old, now;
	uint32_t lines;

	*left_out = 0;
	if (level >= LOG_LEVEL_DEBUG)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)(uint32_t)ts.tv_sec << 32;
	old = atomic_load(&window[level]);
	for (;;) {
		lines = (uint32_t)old;
		if (old >> 32 == now >> 32) {
			if (atomic_compare_exchange_weak(&window[level], &old, old + 1))
				return lines < LINES_PER_SECOND;
		} else if (atomic_compare_exchange_weak(&window[level], &old, now | 1)) {
			if (lines > LINES_PER_SECOND)
				*left_out = lines - LINES_PER_SECOND;
			return 1;
		}
	}
}

/* Writes what of @line there is; nobody can be told if stderr does not take it. */
static void log_write(char *line, int len)
{
	if (len > LINE_MAX_BYTES - 1)
		len = LINE_MAX_BYTES - 1;
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void log_line(enum log_level level, const char *name, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	int saved = errno, len, more;
	uint32_t left_out;
	va_list ap;

	if (level > log_get_level() || !log_admit(level, &left_out))
		return;
	if (left_out) {
		len = snprintf(line, sizeof(line), "skuad: %u lines were suppressed", left_out);
		log_write(line, len);
	}
	len = name ? snprintf(line, sizeof(line), "skuad: %.64s: ", name) :
		     snprintf(line, sizeof(line), "skuad: ");
	va_start(ap, fmt);
	more = vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	va_end(ap);
	if (more > 0)
		len += more;
	log_write(line, len);
	errno = saved;	/* callers may log before they look at it */
}
