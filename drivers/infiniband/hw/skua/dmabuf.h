/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: memory regions of dma-bufs.
 */
#ifndef SKUA_IB_DMABUF_H
#define SKUA_IB_DMABUF_H

#include <rdma/ib_umem.h>

#include "mr.h"

struct ib_mr *skua_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					 int fd, int access, struct ib_dmah *dmah,
					 struct uverbs_attr_bundle *attrs);
/* Destroy the region, but leave @mr and its umem. -EBUSY: as of skua_cmd_destroy_mr(). */
int skua_ib_dmabuf_destroy(struct skua_ib_mr *mr);

#endif /* SKUA_IB_DMABUF_H */
