// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory for rings and records. It comes from mmap, so that it is zeroed and no page of it
 * holds anything else, and is kept from children: a page copied at fork would leave the
 * device writing to the other copy.
 */
#include <errno.h>
#include <sys/mman.h>

#include <util/util.h>

#include "skua.h"

size_t skua_page_align(struct skua_context *ctx, size_t size)
{
	return align(size, to_skua_device(ctx->vctx.context.device)->page_size);
}

int skua_buf_alloc(struct skua_context *ctx, struct skua_buf *buf, size_t size)
{
	int err;

	buf->size = skua_page_align(ctx, size);
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
	ibv_dofork_range(buf->addr, buf->size);
	munmap(buf->addr, buf->size);
}
