// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Host memory: a sorted array of regions, a handful with plain guests, thousands behind a
 * vIOMMU. Every change of the map raises its generation, so that kept pointers die at once.
 */
#include "core/hostmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hostmem_init(struct hostmem *m)
{
	*m = (struct hostmem){ .gen = 1 };
}

void hostmem_free(struct hostmem *m)
{
	free(m->regions);
	hostmem_init(m);
}

static void changed(struct hostmem *m)
{
	if (++m->gen == 0)
		m->gen = 1;
}

/* The first region that ends above @iova. */
static unsigned int find(const struct hostmem *m, uint64_t iova)
{
	unsigned int lo = 0, hi = m->n;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;
		const struct mem_region *r = &m->regions[mid];

		if (iova - r->iova < r->size || iova < r->iova)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

int hostmem_add(struct hostmem *m, uint64_t iova, uint64_t size, void *host, bool writable)
{
	unsigned int i = find(m, iova);

	if (!size || !host || iova + size - 1 < iova)
		return -EINVAL;
	if (i < m->n && m->regions[i].iova <= iova + size - 1)
		return -EEXIST;
	if (m->n == m->cap) {
		unsigned int cap = m->cap ? 2 * m->cap : 16;
		struct mem_region *regions = realloc(m->regions, cap * sizeof(*regions));

		if (!regions)
			return -ENOMEM;
		m->regions = regions;
		m->cap = cap;
	}
	memmove(&m->regions[i + 1], &m->regions[i], (m->n - i) * sizeof(*m->regions));
	m->regions[i] = (struct mem_region){ iova, size, host, writable };
	m->n++;
	changed(m);
	return 0;
}

int hostmem_del(struct hostmem *m, uint64_t iova, uint64_t size)
{
	unsigned int i = find(m, iova);

	if (i == m->n || m->regions[i].iova != iova || m->regions[i].size != size)
		return -ENOENT;
	m->n--;
	memmove(&m->regions[i], &m->regions[i + 1], (m->n - i) * sizeof(*m->regions));
	changed(m);
	return 0;
}

void hostmem_clear(struct hostmem *m)
{
	m->n = 0;
	changed(m);
}

void hostmem_enable(struct hostmem *m, bool on)
{
	m->enabled = on;
	changed(m);
}

uint8_t *hostmem_run(const struct hostmem *m, uint64_t iova, bool write, uint64_t *run)
{
	const struct mem_region *r;
	unsigned int i;

	*run = 0;
	if (!m->enabled)
		return NULL;
	i = find(m, iova);
	if (i == m->n)
		return NULL;
	r = &m->regions[i];
	if (iova < r->iova || (write && !r->writable))
		return NULL;
	*run = r->size - (iova - r->iova);
	return r->host + (iova - r->iova);
}

uint8_t *hostmem_at(const struct hostmem *m, uint64_t iova, uint64_t len, bool write)
{
	uint64_t run;
	uint8_t *p = hostmem_run(m, iova, write, &run);

	return p && len <= run ? p : NULL;
}

void *mem_ref_slow(const struct hostmem *m, struct mem_ref *ref, uint64_t len, bool write)
{
	ref->host = hostmem_at(m, ref->iova, len, write);
	ref->gen = ref->host ? m->gen : 0;
	return ref->host;
}
