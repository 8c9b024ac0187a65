// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Host memory: sorted regions, a handful with plain guests, tens of thousands behind a vIOMMU. They are kept in chunks,
 * so that a change moves few of them: one that is full becomes two, and two neighbours that are less than half of one
 * become one. With a handful there is one chunk, and a look-up is a search in a sorted array. Every change of the map
 * raises its generation, so that kept pointers die at once.
 */
#include "base/hostmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void hostmem_init(struct hostmem *m)
{
	*m = (struct hostmem){ .gen = 1 };
}

void hostmem_free(struct hostmem *m)
{
	hostmem_clear(m);
	free(m->chunks);
	hostmem_init(m);
}

static void changed(struct hostmem *m)
{
	m->gen++;
	m->last.size = 0;
}

static bool ends_above(const struct mem_region *r, uint64_t iova)
{
	return iova - r->iova < r->size || iova < r->iova;
}

/* Of the chunk with the first region that ends above @iova; the last one, if there is none. */
static unsigned int find_chunk(const struct hostmem *m, uint64_t iova)
{
	unsigned int lo = 0, hi = m->n - 1;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;
		const struct mem_chunk *chunk = m->chunks[mid];

		if (ends_above(&chunk->region[chunk->n - 1], iova))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The first region of @chunk that ends above @iova. */
static unsigned int find(const struct mem_chunk *chunk, uint64_t iova)
{
	unsigned int lo = 0, hi = chunk->n;

	while (lo < hi) {
		unsigned int mid = lo + (hi - lo) / 2;

		if (ends_above(&chunk->region[mid], iova))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* A chunk at @at, which is filled next. */
static struct mem_chunk *add_chunk(struct hostmem *m, unsigned int at)
{
	struct mem_chunk *chunk = malloc(sizeof(*chunk));

	if (chunk && m->n == m->cap) {
		unsigned int cap = m->cap ? 2 * m->cap : 16;
		struct mem_chunk **chunks = realloc(m->chunks, cap * sizeof(*chunks));

		if (!chunks) {
			free(chunk);
			return NULL;
		}
		m->chunks = chunks;
		m->cap = cap;
	}
	if (!chunk)
		return NULL;
	memmove(&m->chunks[at + 1], &m->chunks[at], (m->n - at) * sizeof(*m->chunks));
	m->chunks[at] = chunk;
	m->n++;
	chunk->n = 0;
	return chunk;
}

static void del_chunk(struct hostmem *m, unsigned int at)
{
	free(m->chunks[at]);
	m->n--;
	memmove(&m->chunks[at], &m->chunks[at + 1], (m->n - at) * sizeof(*m->chunks));
}

/* The upper half of chunk @at becomes one of its own. */
static bool split(struct hostmem *m, unsigned int at)
{
	struct mem_chunk *to = add_chunk(m, at + 1), *from = m->chunks[at];

	if (!to)
		return false;
	to->n = MEM_CHUNK / 2;
	from->n -= to->n;
	memcpy(to->region, &from->region[from->n], to->n * sizeof(to->region[0]));
	return true;
}

static void merge(struct hostmem *m, unsigned int at)
{
	struct mem_chunk *to = m->chunks[at], *from;

	if (at + 1 >= m->n || to->n + m->chunks[at + 1]->n > MEM_CHUNK / 2)
		return;
	from = m->chunks[at + 1];
	memcpy(&to->region[to->n], from->region, from->n * sizeof(to->region[0]));
	to->n += from->n;
	del_chunk(m, at + 1);
}

int hostmem_add(struct hostmem *m, uint64_t iova, uint64_t size, void *host, bool writable)
{
	struct mem_chunk *chunk;
	unsigned int at, i;

	if (!size || !host || iova >= HOSTMEM_END || size > HOSTMEM_END - iova)
		return -EINVAL;
	if (!m->n && !add_chunk(m, 0))
		return -ENOMEM;
	at = find_chunk(m, iova);
	i = find(m->chunks[at], iova);
	if (i < m->chunks[at]->n && m->chunks[at]->region[i].iova <= iova + size - 1)
		return -EEXIST;
	if (m->chunks[at]->n == MEM_CHUNK) {
		if (!split(m, at))
			return -ENOMEM;
		if (i > m->chunks[at]->n)
			i -= m->chunks[at++]->n;
	}
	chunk = m->chunks[at];
	memmove(&chunk->region[i + 1], &chunk->region[i], (chunk->n - i) * sizeof(chunk->region[0]));
	chunk->region[i] = (struct mem_region){ iova, size, host, writable };
	chunk->n++;
	changed(m);
	return 0;
}

int hostmem_del(struct hostmem *m, uint64_t iova, uint64_t size)
{
	unsigned int at = m->n ? find_chunk(m, iova) : 0;
	struct mem_chunk *chunk = m->n ? m->chunks[at] : NULL;
	unsigned int i = chunk ? find(chunk, iova) : 0;

	if (!chunk || i == chunk->n || chunk->region[i].iova != iova || chunk->region[i].size != size)
		return -ENOENT;
	chunk->n--;
	memmove(&chunk->region[i], &chunk->region[i + 1], (chunk->n - i) * sizeof(chunk->region[0]));
	if (!chunk->n) {
		del_chunk(m, at);
	} else {
		merge(m, at);
		if (at)
			merge(m, at - 1);
	}
	changed(m);
	return 0;
}

void hostmem_clear(struct hostmem *m)
{
	while (m->n)
		free(m->chunks[--m->n]);
	changed(m);
}

void hostmem_enable(struct hostmem *m, bool on)
{
	m->enabled = on;
	changed(m);
}

/* Look up the region with @iova; false: there is none. */
static bool look_up(struct hostmem *m, uint64_t iova)
{
	const struct mem_chunk *chunk;
	unsigned int i;

	if (!m->n)
		return false;
	chunk = m->chunks[find_chunk(m, iova)];
	i = find(chunk, iova);
	if (i == chunk->n || iova < chunk->region[i].iova)
		return false;
	m->last = chunk->region[i];
	return true;
}

uint8_t *hostmem_run(struct hostmem *m, uint64_t iova, bool write, uint64_t *run)
{
	uint64_t in = iova - m->last.iova;

	*run = 0;
	if (!m->enabled)
		return NULL;
	/* Nearly all of a guest's memory is one region. */
	if (in >= m->last.size) {
		if (!look_up(m, iova))
			return NULL;
		in = iova - m->last.iova;
	}
	if (write && !m->last.writable)
		return NULL;
	*run = m->last.size - in;
	return m->last.host + in;
}

uint8_t *hostmem_at(struct hostmem *m, uint64_t iova, uint64_t len, bool write)
{
	uint64_t run;
	uint8_t *p = hostmem_run(m, iova, write, &run);

	return p && len <= run ? p : NULL;
}

bool hostmem_reaches(struct hostmem *m, uint64_t iova, uint64_t len, bool write)
{
	uint64_t run;

	while (hostmem_run(m, iova, write, &run)) {
		if (len <= run)
			return true;
		iova += run;
		len -= run;
	}
	return false;
}

void *mem_ref_slow(struct hostmem *m, struct mem_ref *ref, uint64_t len, bool write)
{
	ref->host = hostmem_at(m, ref->iova, len, write);
	ref->gen = ref->host ? m->gen : 0;
	return ref->host;
}
