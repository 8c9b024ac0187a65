/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * vfio-user on the wire: the messages that skuad serves (QEMU, docs/interop/vfio-user.rst).
 *
 * Every message is a header and what its command needs; sizes count the header. A client
 * sends commands, the server answers each in order, unless the command says NO_REPLY. An
 * error reply is a header alone. File descriptors travel beside a message as SCM_RIGHTS.
 * Both ends are on one machine, so the byte order is its own.
 */
#ifndef SKUAD_PCI_VFIO_USER_PROTO_H
#define SKUAD_PCI_VFIO_USER_PROTO_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define VFIO_USER_MAJOR		0
#define VFIO_USER_MINOR		0

/* Announced in VERSION: what one message may carry, and how many DMA regions there may be. */
#define VFIO_USER_MAX_FDS	16
#define VFIO_USER_MAX_DATA	4096	/* configuration space is read in one go */
#define VFIO_USER_MAX_DMA_MAPS	65535
#define VFIO_USER_PAGE_SIZE	4096

enum vfio_user_command {
	VFIO_USER_VERSION			= 1,
	VFIO_USER_DMA_MAP			= 2,
	VFIO_USER_DMA_UNMAP			= 3,
	VFIO_USER_DEVICE_GET_INFO		= 4,
	VFIO_USER_DEVICE_GET_REGION_INFO	= 5,
	VFIO_USER_DEVICE_GET_IRQ_INFO		= 7,
	VFIO_USER_DEVICE_SET_IRQS		= 8,
	VFIO_USER_REGION_READ			= 9,
	VFIO_USER_REGION_WRITE			= 10,
	VFIO_USER_DEVICE_RESET			= 13,
};

#define VFIO_USER_F_TYPE	0x0f	/* 0: command, 1: reply */
#define VFIO_USER_F_REPLY	0x01
#define VFIO_USER_F_NO_REPLY	0x10
#define VFIO_USER_F_ERROR	0x20

struct vfio_user_hdr {
	uint16_t id;
	uint16_t command;
	uint32_t size;		/* of the message, this header included */
	uint32_t flags;
	uint32_t error;		/* errno, in a reply with VFIO_USER_F_ERROR */
};

struct vfio_user_version {
	uint16_t major;
	uint16_t minor;
	/* then, optionally, JSON with a NUL at its end */
};

struct vfio_user_dma_map {
	uint32_t argsz;
	uint32_t flags;		/* VFIO_DMA_MAP_FLAG_READ, _WRITE */
	uint64_t offset;	/* in the file that comes with the message */
	uint64_t iova;
	uint64_t size;
};

struct vfio_user_dma_unmap {
	uint32_t argsz;
	uint32_t flags;		/* VFIO_DMA_UNMAP_FLAG_* */
	uint64_t iova;
	uint64_t size;
};

struct vfio_user_device_info {
	uint32_t argsz;
	uint32_t flags;		/* VFIO_DEVICE_FLAGS_* */
	uint32_t num_regions;
	uint32_t num_irqs;
};

struct vfio_user_region_info {
	uint32_t argsz;
	uint32_t flags;		/* VFIO_REGION_INFO_FLAG_* */
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};

struct vfio_user_irq_info {
	uint32_t argsz;
	uint32_t flags;		/* VFIO_IRQ_INFO_* */
	uint32_t index;
	uint32_t count;
};

struct vfio_user_irq_set {
	uint32_t argsz;
	uint32_t flags;		/* VFIO_IRQ_SET_* */
	uint32_t index;
	uint32_t start;
	uint32_t count;
};

/* REGION_READ and REGION_WRITE; the data follows. */
struct vfio_user_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

#define VFIO_USER_MAX_MSG	(sizeof(struct vfio_user_hdr) + \
				 sizeof(struct vfio_user_region_access) + VFIO_USER_MAX_DATA)

static_assert(sizeof(struct vfio_user_hdr) == 16, "header");
static_assert(sizeof(struct vfio_user_version) == 4, "VERSION");
static_assert(sizeof(struct vfio_user_dma_map) == 32, "DMA_MAP");
static_assert(offsetof(struct vfio_user_dma_map, iova) == 16, "DMA_MAP");
static_assert(sizeof(struct vfio_user_dma_unmap) == 24, "DMA_UNMAP");
static_assert(sizeof(struct vfio_user_device_info) == 16, "GET_INFO");
static_assert(sizeof(struct vfio_user_region_info) == 32, "GET_REGION_INFO");
static_assert(sizeof(struct vfio_user_irq_info) == 16, "GET_IRQ_INFO");
static_assert(sizeof(struct vfio_user_irq_set) == 20, "SET_IRQS");
static_assert(sizeof(struct vfio_user_region_access) == 16, "REGION_READ, REGION_WRITE");

#endif /* SKUAD_PCI_VFIO_USER_PROTO_H */
