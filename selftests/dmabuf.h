/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* dma-bufs of skua_exporter.ko (kernel/exporter.c), which tests take back. */
#ifndef SELFTESTS_DMABUF_H
#define SELFTESTS_DMABUF_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kernel/exporter.h"

/* The exporter, which is loaded when it is asked for first; -1: there is none. */
static inline int exporter(void)
{
	static int fd = -1;

	if (fd < 0 && !system("modprobe skua_exporter"))
		fd = open("/dev/skua_exporter", O_RDWR | O_CLOEXEC);
	return fd;
}

/* The descriptor of a dma-buf, or -1. */
static inline int export_buffer(uint64_t size, uint64_t phys, uint32_t flags)
{
	struct skua_export arg = { .size = size, .phys = phys, .flags = flags };

	return ioctl(exporter(), SKUA_EXPORT, &arg) ? -1 : arg.fd;
}

static inline struct skua_exported exported(void)
{
	struct skua_exported count;

	if (ioctl(exporter(), SKUA_EXPORT_COUNT, &count))
		memset(&count, 0xff, sizeof(count));
	return count;
}

static inline bool none_exported(void)
{
	struct skua_exported count = exported();

	return !count.buffers && !count.mapped && !count.pinned;
}

/* Take a dma-buf back for good: 0 or an errno. */
static inline int take_back(int fd)
{
	return ioctl(exporter(), SKUA_EXPORT_REVOKE, &fd) ? errno : 0;
}

#endif /* SELFTESTS_DMABUF_H */
