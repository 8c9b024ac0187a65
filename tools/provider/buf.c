// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for rings and records. It comes from mmap, so that it is zeroed and no page of it
 * holds anything else, and is kept from children: a page copied at fork would leave the
 * device writing to the other copy. Or it comes from the allocator of a parent domain, which then
 * sees to that.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <util/util.h>

#include "skua.h"

static size_t skua_page_align(struct skua_context *ctx, size_t size)
{
	return align(size, to_skua_device(ctx->vctx.context.device)->page_size);
}

/* Resources of other providers have types; ours are all alike. */
#define SKUA_RESOURCE_TYPE	0

/* From a parent domain's allocator. IBV_ALLOCATOR_USE_DEFAULT: it does not want to. */
static void *skua_domain_alloc(struct skua_context *ctx, struct skua_pd *pd, size_t size)
{
	size_t alignment = to_skua_device(ctx->vctx.context.device)->page_size;

	if (!pd || !pd->alloc)
		return IBV_ALLOCATOR_USE_DEFAULT;
	return pd->alloc(&pd->ibv_pd, pd->context, size, alignment, SKUA_RESOURCE_TYPE);
}

int skua_buf_alloc(struct skua_context *ctx, struct skua_pd *pd, struct skua_buf *buf, size_t size)
{
	int err;

	buf->size = skua_page_align(ctx, size);
	buf->addr = skua_domain_alloc(ctx, pd, buf->size);
	if (buf->addr != IBV_ALLOCATOR_USE_DEFAULT) {
		if (!buf->addr)
			return ENOMEM;
		buf->domain = pd;
		memset(buf->addr, 0, buf->size);
		return 0;
	}

	buf->domain = NULL;
	buf->addr = mmap(NULL, buf->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (buf->addr == MAP_FAILED)
		return errno;

	if (ibv_dontfork_range(buf->addr, buf->size)) {
		err = errno;
		munmap(buf->addr, buf->size);
		return err;
	}
	return 0;
}

void skua_buf_free(struct skua_buf *buf)
{
	struct skua_pd *pd = buf->domain;

	if (pd) {
		pd->free(&pd->ibv_pd, pd->context, buf->addr, SKUA_RESOURCE_TYPE);
		return;
	}
	ibv_dofork_range(buf->addr, buf->size);
	munmap(buf->addr, buf->size);
}
