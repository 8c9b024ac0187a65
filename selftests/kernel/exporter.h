/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What /dev/skua_exporter does: dma-bufs whose exporter obeys a test. */
#ifndef SELFTESTS_KERNEL_EXPORTER_H
#define SELFTESTS_KERNEL_EXPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SKUA_EXPORT_STATIC	0x1	/* it cannot be pinned, because it never moves */
#define SKUA_EXPORT_UNPINNABLE	0x2	/* it moves, and refuses to be pinned */
#define SKUA_EXPORT_PAIRS	0x4	/* each second page is behind the one before it */
#define SKUA_EXPORT_FLAGS	0x7

/**
 * struct skua_export - a dma-buf to make
 * @size: bytes, whole pages
 * @phys: physical address, as of a BAR; 0: pages of its own, none behind the one before it
 * @flags: SKUA_EXPORT_*
 * @fd: returned
 */
struct skua_export {
	__u64 size;
	__u64 phys;
	__u32 flags;
	__s32 fd;
};

/**
 * struct skua_exported - what there is of dma-bufs
 * @buffers: that have not been released
 * @mapped: mappings for importers
 * @pinned: pins of importers
 */
struct skua_exported {
	__u32 buffers;
	__u32 mapped;
	__u32 pinned;
	__u32 rsvd;
};

#define SKUA_EXPORT		_IOWR('S', 1, struct skua_export)
/* Take back the dma-buf with this descriptor, for good. EBUSY: it is still mapped after that. */
#define SKUA_EXPORT_REVOKE	_IOW('S', 2, __s32)
#define SKUA_EXPORT_COUNT	_IOR('S', 3, struct skua_exported)

#endif /* SELFTESTS_KERNEL_EXPORTER_H */
