// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for rings and records: zeroed pages that hold nothing else, kept from children, since a
 * page copied at fork would leave the device writing to the other copy. They come from the heap,
 * which has those of the last queue ready for the next. Or they come from the allocator of a
 * parent domain, which then sees to all that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	err = posix_memalign(&buf->addr, to_skua_device(ctx->vctx.context.device)->page_size, buf->size);
	if (err)
		return err;
	memset(buf->addr, 0, buf->size);

	if (ibv_dontfork_range(buf->addr, buf->size)) {
		err = errno;
		free(buf->addr);
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
	free(buf->addr);
}
