// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Device memory. Programs cannot map it: they have a command, DM_COPY, for copies between it and
 * their own memory. The driver carries it out in pieces, by a buffer of its own, so that nothing is
 * pinned.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <linux/skua/command.h>
#include <rdma/skua-abi.h>

#include "dm.h"
#include "skua_ib.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static_assert(SKUA_IB_METHOD_DM_COPY == 1 << UVERBS_ID_NS_SHIFT);
static_assert((u8)SKUA_DM_COPY_TO_DM == SKUA_DM_FROM_HOST);
static_assert((u8)SKUA_DM_COPY_FROM_DM == SKUA_DM_TO_HOST);

/* Larger buffers are hard to find when memory is fragmented. */
#define SKUA_IB_DM_PIECE \
	min_t(size_t, SKUA_DM_COPY_MAX, PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)

u64 skua_ib_max_dm(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_DM) ? min_t(u64, dev->limits.max_dm, U32_MAX) : 0;
}

struct ib_dm *skua_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibucontext,
			       struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct skua_dev *dev = to_skua_dev(ibdev);
	struct skua_ib_dm *dm;
	int err;

	if (!attr->length || attr->length > skua_ib_max_dm(dev) ||
	    attr->alignment > SKUA_DM_MAX_LOG_ALIGN)
		return ERR_PTR(-EINVAL);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	err = skua_cmd_alloc_dm(dev, attr->length, attr->alignment, &dm->dmn);
	if (err) {
		kfree(dm);
		return ERR_PTR(err);
	}
	return &dm->ibdm;
}

/* No MR is left: the core counts them. */
int skua_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_dm *dm = to_skua_ib_dm(ibdm);

	skua_cmd_free_dm(to_skua_dev(ibdm->device), dm->dmn);
	kfree(dm);
	return 0;
}

/* Copy @len bytes from or to @offset by @buf, which is no shorter. */
static int skua_ib_dm_copy_piece(struct ib_dm *ibdm, enum skua_dm_direction direction, u64 offset,
				 void __user *user, void *buf, size_t len)
{
	bool to_host = direction == SKUA_DM_TO_HOST;
	enum dma_data_direction dir = to_host ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	struct skua_dev *dev = to_skua_dev(ibdm->device);
	dma_addr_t dma;
	int err;

	if (!to_host && copy_from_user(buf, user, len))
		return -EFAULT;
	dma = dma_map_single(skua_dma_dev(dev), buf, len, dir);
	if (dma_mapping_error(skua_dma_dev(dev), dma))
		return -ENOMEM;
	err = skua_cmd_dm_copy(dev, to_skua_ib_dm(ibdm)->dmn, direction, offset, dma, len);
	/* A device that died without an answer is fenced by now. */
	dma_unmap_single(skua_dma_dev(dev), dma, len, dir);
	if (err)
		return err;
	return to_host && copy_to_user(user, buf, len) ? -EFAULT : 0;
}

static int skua_ib_dm_copy(struct ib_dm *ibdm, const struct skua_dm_copy_req *req)
{
	size_t size = min_t(u64, req->length, SKUA_IB_DM_PIECE);
	void __user *user = u64_to_user_ptr(req->addr);
	u64 done;
	int err = 0;
	void *buf;

	buf = kmalloc(size, GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	for (done = 0; !err && done < req->length; done += size) {
		size = min_t(u64, req->length - done, SKUA_IB_DM_PIECE);
		err = skua_ib_dm_copy_piece(ibdm, req->direction, req->offset + done, user + done,
					    buf, size);
	}
	kfree(buf);
	return err;
}

static int UVERBS_HANDLER(SKUA_IB_METHOD_DM_COPY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, SKUA_IB_ATTR_DM_COPY_HANDLE);
	struct skua_dm_copy_req req;
	int err;

	err = uverbs_copy_from_or_zero(&req, attrs, SKUA_IB_ATTR_DM_COPY_REQ);
	if (err)
		return err;
	if (req.comp_mask)
		return -EOPNOTSUPP;
	if (req.direction > SKUA_DM_COPY_FROM_DM ||
	    !IS_ALIGNED(req.offset | req.length, SKUA_DM_COPY_UNIT) ||
	    req.offset > ibdm->length || req.length > ibdm->length - req.offset)
		return -EINVAL;
	/* Who imports a DM copies nothing, to learn whether it is there. */
	return req.length ? skua_ib_dm_copy(ibdm, &req) : 0;
}

DECLARE_UVERBS_NAMED_METHOD(SKUA_IB_METHOD_DM_COPY,
			    UVERBS_ATTR_IDR(SKUA_IB_ATTR_DM_COPY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(SKUA_IB_ATTR_DM_COPY_REQ,
					       UVERBS_ATTR_STRUCT(struct skua_dm_copy_req,
								  comp_mask),
					       UA_MANDATORY));

ADD_UVERBS_METHODS(skua_ib_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(SKUA_IB_METHOD_DM_COPY));

const struct uapi_definition skua_ib_dm_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &skua_ib_dm_methods),
	{}
};
