// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions of dma-bufs: memory that another driver exports.
 *
 * Theory of operation: the exporter pins the buffer for the region, so that it does not move while
 * the region exists. Nevertheless it may take the buffer back, for example because its device is
 * reset. The core then calls skua_ib_dmabuf_revoke(), and unmaps the buffer when that returns. The
 * region remains until the program deregisters it, but each access to it fails (MR-14).
 *
 * The lock of the buffer (dma_resv) is held while a region is created, revoked and destroyed, so
 * these never overlap. The device is waited for under it, by commands that need no other lock;
 * INVALIDATE_MR, which the exporter waits for, does not even wait for other commands (CMD-18).
 */
#include <linux/slab.h>

#include <linux/skua/command.h>

#include "compat.h"
#include "dmabuf.h"
#include "skua_ib.h"

/* Access flags that reg_user_mr_dmabuf accepts. The buffer is pinned, so nothing is on demand. */
#define SKUA_IB_DMABUF_ACCESS	(SKUA_IB_MR_ACCESS & ~(IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB))

static void skua_ib_dmabuf_revoke(void *data)
{
	struct skua_ib_mr *mr = data;

	/* The core may not have filled in mr->ibmr.device yet. */
	skua_cmd_invalidate_mr(to_skua_dev(mr->umem->ibdev), mr->key);
}

struct ib_mr *skua_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					 int fd, int access, struct ib_dmah *dmah,
					 struct uverbs_attr_bundle *attrs)
{
	struct skua_mr_params params = {
		.type = SKUA_MR_REGULAR,
		.access = skua_ib_access(to_skua_dev(ibpd->device), access),
		.iova = iova,
		.length = length,
	};
	struct ib_umem_dmabuf *dmabuf;
	struct skua_ib_mr *mr;
	int err;

	err = ib_no_udata_io(&attrs->driver_udata);
	if (err)
		return ERR_PTR(err);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	/* First of all: programs try a bad descriptor to learn of the verb. */
	dmabuf = ib_umem_dmabuf_get_pinned_revocable_and_lock(ibpd->device, offset, length, fd,
							      access);
	if (IS_ERR(dmabuf)) {
		err = PTR_ERR(dmabuf);
		goto err_mr;
	}
	if (dmah || access & ~SKUA_IB_DMABUF_ACCESS) {
		err = -EOPNOTSUPP;
		goto err_dmabuf;
	}
	err = skua_ib_describe_umem(mr, ibpd, &dmabuf->umem, &params, skua_ib_create_mr);
	if (err)
		goto err_dmabuf;
	skua_ib_mr_set_umem(mr, &dmabuf->umem);
	mr->is_dmabuf = true;
	mr->access = access;
	ib_umem_dmabuf_set_revoke_locked(dmabuf, skua_ib_dmabuf_revoke, mr);
	ib_umem_dmabuf_revoke_unlock(dmabuf);
	return &mr->ibmr;

err_dmabuf:
	ib_umem_dmabuf_revoke_unlock(dmabuf);
	ib_umem_release(&dmabuf->umem);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

int skua_ib_dmabuf_destroy(struct skua_ib_mr *mr)
{
	struct ib_umem_dmabuf *dmabuf = to_ib_umem_dmabuf(mr->umem);
	int err;

	ib_umem_dmabuf_revoke_lock(dmabuf);
	err = skua_cmd_destroy_mr(to_skua_dev(mr->umem->ibdev), mr->key);
	/* Another region may get the key. */
	if (!err)
		ib_umem_dmabuf_set_revoke_locked(dmabuf, NULL, NULL);
	ib_umem_dmabuf_revoke_unlock(dmabuf);
	return err;
}
