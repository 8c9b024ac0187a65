/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Guest memory as the client hands it over: files, mapped once and kept, and the regions of
 * DMA address space that lie in them. On the engine's thread.
 */
#ifndef SKUAD_PCI_DMA_H
#define SKUAD_PCI_DMA_H

#include <stdbool.h>
#include <stdint.h>

#include "pci/mem_guard.h"
#include "pci/vfio_user_proto.h"

struct closer;
struct skua_dev;

#define DMA_MAX_FILES	64

struct dma_file;

struct dma {
	struct skua_dev *dev;
	struct closer *closer;		/* of files that are not used any more */
	struct mem_guard guard;
	void *regions;			/* tree of struct dma_region, by address */
	unsigned int num_regions;
	void *old_regions;		/* the same, of a client that is gone */
	struct dma_file *files[DMA_MAX_FILES];
	uint64_t mapped;		/* bytes of these files */
	bool shared;			/* there was a region within reach, since dma_clear() */
};

int dma_init(struct dma *d, struct skua_dev *dev, struct closer *closer);
void dma_destroy(struct dma *d);

/*
 * Maps a region of the file *fd, or with -1 one that cannot be reached: the client's
 * ROMs and other devices. Closes *fd and puts -1 in its place if that is certain not to wait. 0, or a
 * negative errno; if *why is set then, it says what is wrong with the region or its file, and the client
 * is not to be trusted.
 */
int dma_map(struct dma *d, const struct vfio_user_dma_map *map, int *fd, const char **why);

/*
 * Unmaps some of the regions within [@first, @last], and adds their bytes to *unmapped; the files are kept. -EAGAIN:
 * there are more. That there is none is no error, as with VFIO: a guest's IOMMU has its whole address space unmapped.
 * -EINVAL: that would cut a region in two, and nothing is done.
 */
int dma_unmap(struct dma *d, uint64_t first, uint64_t last, uint64_t *unmapped);

/* The client is gone: nothing of its memory is within reach any more. */
void dma_clear(struct dma *d);

/* Regions of the client that is gone are still to be freed: the next one has to wait. */
static inline bool dma_is_clearing(const struct dma *d)
{
	return d->old_regions;
}

/* Frees some of them; true: there are more. */
bool dma_run(struct dma *d);

/* There are regions, but never was one within reach: the guest's memory is not shared. */
bool dma_not_shared(const struct dma *d);

#endif /* SKUAD_PCI_DMA_H */
