/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Host memory as the device reaches it: DMA addresses to pointers of this process.
 *
 * The map belongs to the engine's thread. A pointer is good until the map's generation
 * changes; who keeps one keeps the generation with it.
 */
#ifndef SKUAD_BASE_HOSTMEM_H
#define SKUAD_BASE_HOSTMEM_H

#include <stdbool.h>
#include <stdint.h>

struct mem_region {
	uint64_t iova;
	uint64_t size;
	uint8_t *host;
	bool writable;
};

#define MEM_CHUNK	256

/* No host memory is here or above: addresses that stand for other memory. */
#define HOSTMEM_END	(0ull - (1ull << 32))

struct mem_chunk {
	unsigned int n;			/* never 0 */
	struct mem_region region[MEM_CHUNK];
};

struct hostmem {
	struct mem_chunk **chunks;	/* of regions by iova, apart from each other */
	unsigned int n, cap;
	struct mem_region last;		/* that was looked up; its size is 0 if there is none */
	uint64_t gen;			/* never 0, and never twice the same */
	bool enabled;			/* bus mastering */
};

/* A place in host memory that is used again and again: its pointer is kept. */
struct mem_ref {
	uint64_t iova;
	uint64_t gen;			/* 0: not resolved */
	void *host;
};

void hostmem_init(struct hostmem *m);
void hostmem_free(struct hostmem *m);

/* 0, -EEXIST, -EINVAL, -ENOMEM. */
int hostmem_add(struct hostmem *m, uint64_t iova, uint64_t size, void *host, bool writable);
/* 0, or -ENOENT if [@iova, @iova + @size) is not one region. */
int hostmem_del(struct hostmem *m, uint64_t iova, uint64_t size);
void hostmem_clear(struct hostmem *m);
void hostmem_enable(struct hostmem *m, bool on);

/* There are many regions, and look-ups take longer. */
static inline bool hostmem_is_large(const struct hostmem *m)
{
	return m->n > 1;
}

/* The pointer to @iova, and in *@run the bytes from there that lie in one piece. NULL if the
 * address cannot be reached, or not be written and @write is set. */
uint8_t *hostmem_run(struct hostmem *m, uint64_t iova, bool write, uint64_t *run);

/* The pointer to @len bytes at @iova in one piece, or NULL. */
uint8_t *hostmem_at(struct hostmem *m, uint64_t iova, uint64_t len, bool write);

/* All of the @len bytes at @iova, in one piece or several, can be reached, and written if @write is set. */
bool hostmem_reaches(struct hostmem *m, uint64_t iova, uint64_t len, bool write);

/* The pointer to the @len bytes at @ref->iova in one piece, or NULL: the kept pointer while it is good. */
void *mem_ref_slow(struct hostmem *m, struct mem_ref *ref, uint64_t len, bool write);

static inline void *mem_ref_at(struct hostmem *m, struct mem_ref *ref, uint64_t len, bool write)
{
	if (ref->gen == m->gen)
		return ref->host;
	return mem_ref_slow(m, ref, len, write);
}

#endif /* SKUAD_BASE_HOSTMEM_H */
