// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * A client describes its memory region by region, changes its mind often (a BIOS has all of
 * it mapped and unmapped several times), and sends the same few files again and again. So a
 * file is mapped as a whole when it is first seen and stays mapped while the client is there:
 * its pages are faulted in once. A region is a place in such a mapping. With an IOMMU in the
 * guest, regions are pages and there are many: they are kept in a tree in which regions that
 * overlap compare as equal, so that one look-up finds whatever is in the way.
 *
 * Files: memory whose pages come from memory, that is a memfd, or a file of tmpfs or
 * hugetlbfs. From another file system, an access could take as long as its disk or its server
 * likes, on a thread that serves other guests too: regions of such files are out of reach
 * unless the device is persistent=on, as are those that come without a file. Even fstat() may ask a server of
 * the client's, so the first question is for seals: only the former files have them, and the kernel itself answers.
 * Files without F_SEAL_SHRINK are served, under the guard (mem_guard.c), as are all.
 *
 * Each region must lie in its file as that is when the region arrives.
 *
 * The engine serves other guests, too, so what takes long is done in steps: unmapping many regions, and freeing those
 * of a client that is gone. The next client is not served before they are freed. Files are unmapped by another thread
 * (closer.c).
 */
#include "pci/dma.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/closer.h"
#include "base/log.h"
#include "nic/dev.h"

/* Of the process's address space, so that no client takes it all: 4 TiB. */
#define MAX_MAPPED	(4ull << 40)

/* In a step, some 30 us. */
#define STEP_REGIONS	64

struct dma_file {
	dev_t dev;
	ino_t ino;
	bool writable;
	uint8_t *base;
	uint64_t size;
	uint64_t page;			/* bytes: that of a file of huge pages is one of them */
	unsigned int regions;
};

struct dma_region {
	uint64_t first, last;
	struct dma_file *file;		/* NULL: cannot be reached */
};

static int region_cmp(const void *a, const void *b)
{
	const struct dma_region *x = a, *y = b;

	if (x->last < y->first)
		return -1;
	return x->first > y->last;
}

static struct dma_region *region_find(struct dma *d, uint64_t first, uint64_t last)
{
	struct dma_region key = { .first = first, .last = last };
	struct dma_region **node = tfind(&key, &d->regions, region_cmp);

	return node ? *node : NULL;
}

int dma_init(struct dma *d, struct skua_dev *dev, struct closer *closer)
{
	*d = (struct dma){ .dev = dev, .closer = closer };
	return mem_guard_init(&d->guard);
}

void dma_destroy(struct dma *d)
{
	dma_clear(d);
	while (dma_run(d))
		;
	mem_guard_destroy(&d->guard);
}

/* Nothing refers to it any more. */
static void file_close(struct dma *d, unsigned int slot)
{
	struct dma_file *f = d->files[slot];

	mem_guard_del(f->base);
	d->files[slot] = NULL;
	d->mapped -= f->size;
	closer_unmap(d->closer, f->base, f->size, f->page);
	free(f);
}

static void regions_free_some(struct dma *d)
{
	struct dma_region all = { .first = 0, .last = UINT64_MAX }, **node;

	for (unsigned int i = 0; i < STEP_REGIONS; i++) {
		struct dma_region *r;

		node = tfind(&all, &d->old_regions, region_cmp);
		if (!node)
			return;
		r = *node;
		tdelete(r, &d->old_regions, region_cmp);
		free(r);
	}
}

bool dma_run(struct dma *d)
{
	regions_free_some(d);
	return dma_is_clearing(d);
}

/* A slot for a file, if need be that of one without regions. */
static int file_slot(struct dma *d)
{
	unsigned int i;

	for (i = 0; i < DMA_MAX_FILES; i++)
		if (!d->files[i])
			return i;
	for (i = 0; i < DMA_MAX_FILES; i++) {
		if (!d->files[i]->regions) {
			file_close(d, i);
			return i;
		}
	}
	return -1;
}

/* A file is mapped writable if it can be, whatever its first region asks for. */
static struct dma_file *file_open(struct dma *d, int fd, const struct stat *st, bool write,
				  const char **why)
{
	bool writable = true;
	struct dma_file *f;
	int slot;
	void *p;

	if ((uint64_t)st->st_size > MAX_MAPPED - d->mapped - closer_bytes(d->closer)) {
		*why = "its file is larger than skuad maps for one guest";
		return NULL;
	}
	slot = file_slot(d);
	if (slot < 0) {
		*why = "too many files";
		return NULL;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		*why = "out of memory";
		return NULL;
	}
	p = mmap(NULL, st->st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED && !write) {
		writable = false;
		p = mmap(NULL, st->st_size, PROT_READ, MAP_SHARED, fd, 0);
	}
	if (p == MAP_FAILED) {
		*why = "its file cannot be mapped";
		goto free_file;
	}
	if (mem_guard_add(&d->guard, p, st->st_size)) {
		*why = "too many files in all";
		goto unmap;
	}
	madvise(p, st->st_size, MADV_DONTDUMP);
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->writable = writable;
	f->base = p;
	f->size = st->st_size;
	f->page = st->st_blksize;
	d->files[slot] = f;
	d->mapped += f->size;
	return f;

unmap:
	munmap(p, st->st_size);
free_file:
	free(f);
	return NULL;
}

/* A memfd, or a file of tmpfs or hugetlbfs. */
static bool is_in_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* NULL and *why set: the client is wrong; NULL alone: a file that is out of reach. */
static struct dma_file *file_get(struct dma *d, int fd, bool in_memory, uint64_t end, bool write,
				 const char **why)
{
	struct stat st;
	unsigned int i;

	if (!in_memory && !skua_dev_is_persistent(d->dev)) {
		log_err(skua_dev_name(d->dev), "guest memory that is no file in memory cannot be used "
			"(use a memory-backend-memfd, or persistent=on)");
		return NULL;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		*why = "its descriptor is not that of a regular file";
		return NULL;
	}
	if (end > (uint64_t)st.st_size) {
		*why = "it is not inside its file, or the file was truncated";
		return NULL;
	}
	for (i = 0; i < DMA_MAX_FILES; i++) {
		struct dma_file *f = d->files[i];

		/* A file that has grown since is mapped once more. */
		if (f && f->dev == st.st_dev && f->ino == st.st_ino && f->size >= end &&
		    (f->writable || !write))
			return f;
	}
	return file_open(d, fd, &st, write, why);
}

static const char *map_check(const struct vfio_user_dma_map *map)
{
	const uint32_t rw = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;

	if (map->flags & ~rw || !(map->flags & rw))
		return "unknown flags";
	if (!map->size || map->iova + (map->size - 1) < map->iova ||
	    map->offset + map->size < map->offset)
		return "it is empty or wraps around";
	if ((map->iova | map->size | map->offset) % VFIO_USER_PAGE_SIZE)
		return "it is not made of whole pages";
	return NULL;
}

int dma_map(struct dma *d, const struct vfio_user_dma_map *map, int *fd, const char **why)
{
	bool write = map->flags & VFIO_DMA_MAP_FLAG_WRITE;
	bool in_memory = *fd >= 0 && is_in_memory(*fd);
	struct dma_region *r;
	int ret;

	*why = map_check(map);
	if (*why)
		return -EINVAL;
	if (region_find(d, map->iova, map->iova + (map->size - 1)))
		return -EEXIST;
	if (d->num_regions == VFIO_USER_MAX_DMA_MAPS)
		return -ENOSPC;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->first = map->iova;
	r->last = map->iova + (map->size - 1);
	if (*fd >= 0) {
		r->file = file_get(d, *fd, in_memory, map->offset + map->size, write, why);
		ret = -EINVAL;
		if (*why)
			goto free_region;
	}
	ret = -ENOMEM;
	if (!tsearch(r, &d->regions, region_cmp))
		goto free_region;
	if (r->file) {
		ret = skua_dev_mem_map(d->dev, map->iova, map->size,
				       r->file->base + map->offset, write);
		if (ret)
			goto forget_region;
		r->file->regions++;
		d->shared = true;
		/* The file stays, because it is mapped. */
		if (in_memory) {
			close(*fd);
			*fd = -1;
		}
	}
	d->num_regions++;
	return 0;

forget_region:
	tdelete(r, &d->regions, region_cmp);
free_region:
	free(r);
	return ret;
}

static uint64_t region_remove(struct dma *d, struct dma_region *r)
{
	uint64_t size = r->last - r->first + 1;

	if (r->file) {
		skua_dev_mem_unmap(d->dev, r->first, size);
		r->file->regions--;
	}
	tdelete(r, &d->regions, region_cmp);
	free(r);
	d->num_regions--;
	return size;
}

int dma_unmap(struct dma *d, uint64_t first, uint64_t last, uint64_t *unmapped)
{
	struct dma_region *r;

	if (last < first)
		return -EINVAL;
	r = region_find(d, first, first);
	if (r && r->first < first)
		return -EINVAL;
	r = region_find(d, last, last);
	if (r && r->last > last)
		return -EINVAL;
	for (unsigned int i = 0; i < STEP_REGIONS; i++) {
		r = region_find(d, first, last);
		if (!r)
			return 0;
		*unmapped += region_remove(d, r);
	}
	return -EAGAIN;
}

void dma_clear(struct dma *d)
{
	unsigned int i;

	skua_dev_mem_unmap_all(d->dev);
	/* Of the client before, at the end of the device: else they were freed before there was another client. */
	while (d->old_regions)
		regions_free_some(d);
	d->old_regions = d->regions;
	d->regions = NULL;
	d->num_regions = 0;
	for (i = 0; i < DMA_MAX_FILES; i++)
		if (d->files[i])
			file_close(d, i);
	mem_guard_tripped(&d->guard);	/* whatever it was, it is gone */
	d->shared = false;
}

bool dma_not_shared(const struct dma *d)
{
	return d->num_regions && !d->shared;
}
