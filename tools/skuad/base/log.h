/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log: lines on stderr, "skuad: NAME: TEXT", each by one write so that threads do not
 * mix. A guest can cause lines but not a flood: above 100 a second, those of that level are
 * counted instead, and the count is a line of its own. Any thread may log.
 */
#ifndef SKUAD_BASE_LOG_H
#define SKUAD_BASE_LOG_H

enum log_level {
	LOG_LEVEL_ERR,		/* somebody must do something, or a connection ended badly */
	LOG_LEVEL_INFO,		/* what an operator wants to know */
	LOG_LEVEL_DEBUG,	/* for those who work on skuad or a driver; not limited */
};

/* Lines up to this level are written; LOG_LEVEL_INFO at first. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* @name: the device's or another part's, or NULL; no newline at the end of @fmt. */
void log_line(enum log_level level, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define log_err(name, ...)	log_line(LOG_LEVEL_ERR, name, __VA_ARGS__)
#define log_info(name, ...)	log_line(LOG_LEVEL_INFO, name, __VA_ARGS__)
/* Arguments are evaluated only if the line is wanted. */
#define log_debug(name, ...) \
	do { \
		if (log_get_level() >= LOG_LEVEL_DEBUG) \
			log_line(LOG_LEVEL_DEBUG, name, __VA_ARGS__); \
	} while (0)

#endif /* SKUAD_BASE_LOG_H */
