/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device as whoever hosts it sees it: pci/ (a guest behind vfio-user) or the host
 * harness. Nothing here knows of sockets.
 *
 * All functions of a device are called on the thread of its engine, except where noted.
 */
#ifndef SKUAD_NIC_DEV_H
#define SKUAD_NIC_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/host.h"

struct engine;
struct seglist;

#define SKUA_DEV_MAX_PAGES	41943040

/* How a device is to be; copied. */
struct skua_dev_config {
	const char *name;		/* "skua0": in logs, counters and captures */
	uint8_t mac[6];
	const char *link;		/* "wire:NAME", or another (link/spec.h) */
	bool spoof;			/* the host may change the MAC, and send from others */
	bool persistent;		/* host memory is on persistent media */
	uint32_t max_pages;		/* quota (manual: PL-10); 0: SKUA_DEV_MAX_PAGES, which it is at most */
};

/*
 * Create a device on @engine, in the state after reset, with no host memory and bus
 * mastering off. NULL with errno set (EINVAL: a bad link or MAC).
 */
struct skua_dev *skua_dev_create(struct engine *engine,
				 const struct skua_dev_config *config,
				 const struct skua_host_ops *ops, void *host);
void skua_dev_destroy(struct skua_dev *dev);

/* Access to a BAR; @len is 1, 2, 4 or 8 and @offset aligned to it, else the access is
 * counted and reads as all ones. MSI-X table and PBA are the host's, not seen here. */
void skua_dev_bar_write(struct skua_dev *dev, unsigned int bar, uint64_t offset,
			const void *data, size_t len);
void skua_dev_bar_read(struct skua_dev *dev, unsigned int bar, uint64_t offset,
		       void *data, size_t len);

/* Function level reset, as the RESET bit of CONTROL does it; host memory stays mapped. */
void skua_dev_reset(struct skua_dev *dev);

/* Bus mastering on or off, and D0 or not: while off the device reaches no memory. */
void skua_dev_set_bus_master(struct skua_dev *dev, bool on);

/*
 * Host memory [@iova, @iova + @size) is at @host, until unmapped. Regions do not overlap;
 * @writable says whether the device may write there. Returns 0 or a negative errno
 * (-EEXIST: overlap, -EINVAL, -ENOMEM). When unmap returns, no thread of the device reads
 * or writes the region ever again. Unmap takes exactly a mapped region (-ENOENT else);
 * unmap_all takes all.
 */
int skua_dev_mem_map(struct skua_dev *dev, uint64_t iova, uint64_t size, void *host,
		     bool writable);
int skua_dev_mem_unmap(struct skua_dev *dev, uint64_t iova, uint64_t size);
void skua_dev_mem_unmap_all(struct skua_dev *dev);

/* As it was created. */
bool skua_dev_is_persistent(const struct skua_dev *dev);

const char *skua_dev_name(const struct skua_dev *dev);

/* Its engine and its port call these; tests do, too. */

/* One round of commands and queues. True if anything was done. */
bool skua_dev_run(struct skua_dev *dev);
/* True if it must be run again without waiting for a doorbell or a timer. */
bool skua_dev_active(const struct skua_dev *dev);
/* A frame in memory of our own. */
void skua_dev_rx_frame(struct skua_dev *dev, const struct seglist *frame);

#endif /* SKUAD_NIC_DEV_H */
