// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions.
 *
 * A region for fast registration has a list of pages or pieces, which is mapped for the device as
 * long as the region is there: map_mr_sg fills it, REG_MR tells where it is, and the device reads
 * it once. The consumer does not map again before it has invalidated the region, so the list was
 * read by then.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <linux/skua/command.h>
#include <linux/skua/memory.h>
#include <skua/wqe.h>

#include "dm.h"
#include "dmabuf.h"
#include "mr.h"
#include "odp.h"
#include "pd.h"
#include "skua_ib.h"
#include "umem.h"

/* Access flags that reg_dm_mr accepts. It requires ZERO_BASED. */
#define SKUA_IB_DM_MR_ACCESS \
	((SKUA_IB_MR_ACCESS | IB_ZERO_BASED) &						\
	 ~(IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB | IB_ACCESS_ON_DEMAND |			\
	   IB_ACCESS_FLUSH_PERSISTENT))

u32 skua_ib_flush_rights(const struct skua_dev *dev, int access)
{
	u32 rights = 0;

	if (access & IB_ACCESS_FLUSH_GLOBAL && dev->limits.flush_caps & SKUA_FLUSH_GLOBAL)
		rights |= SKUA_ACCESS_FLUSH_GLOBAL;
	if (access & IB_ACCESS_FLUSH_PERSISTENT && dev->limits.flush_caps & SKUA_FLUSH_PERSISTENT)
		rights |= SKUA_ACCESS_FLUSH_PERSISTENT;
	return rights;
}

u32 skua_ib_access(const struct skua_dev *dev, int access)
{
	u32 rights = 0;

	if (access & IB_ACCESS_LOCAL_WRITE)
		rights |= SKUA_ACCESS_LOCAL_WRITE;
	if (access & IB_ACCESS_REMOTE_WRITE)
		rights |= SKUA_ACCESS_REMOTE_WRITE;
	if (access & IB_ACCESS_REMOTE_READ)
		rights |= SKUA_ACCESS_REMOTE_READ;
	if (access & IB_ACCESS_REMOTE_ATOMIC && skua_has(dev, SKUA_F_ATOMIC))
		rights |= SKUA_ACCESS_REMOTE_ATOMIC;
	if (access & IB_ACCESS_MW_BIND && skua_has(dev, SKUA_F_MW))
		rights |= SKUA_ACCESS_MW_BIND;
	return rights | skua_ib_flush_rights(dev, access);
}

u32 skua_ib_kernel_access(struct skua_dev *dev, int access)
{
	/* The kernel asks for remote rights alone, which need the local one (MR-3). */
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		access |= IB_ACCESS_LOCAL_WRITE;
	return skua_ib_access(dev, access);
}

int skua_ib_create_mr(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct skua_mr_params *params)
{
	int err;

	params->pdn = to_skua_ib_pd(ibpd)->pdn;
	err = skua_cmd_create_mr(to_skua_dev(ibpd->device), params, &mr->key);
	if (err)
		return err;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return 0;
}

void skua_ib_mr_set_umem(struct skua_ib_mr *mr, struct ib_umem *umem)
{
	mr->umem = umem;
	WRITE_ONCE(mr->pinned_pages, umem ? ib_umem_num_pages(umem) : 0);
}

struct ib_mr *skua_ib_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct skua_mr_params params = {
		.type = SKUA_MR_PHYS,
		.access = skua_ib_kernel_access(to_skua_dev(ibpd->device), access),
	};
	struct skua_ib_mr *mr;
	int err;

	if (access & ~SKUA_IB_MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_create_mr(mr, ibpd, &params);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static int skua_ib_modify_mr(struct skua_ib_mr *mr, struct ib_pd *ibpd,
			     struct skua_mr_params *params)
{
	params->pdn = to_skua_ib_pd(ibpd)->pdn;
	return skua_cmd_modify_mr(to_skua_dev(ibpd->device), mr->key, params);
}

int skua_ib_describe_umem(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct ib_umem *umem,
			  struct skua_mr_params *params,
			  int (*describe)(struct skua_ib_mr *mr, struct ib_pd *ibpd,
					  struct skua_mr_params *params))
{
	struct skua_dev *dev = to_skua_dev(ibpd->device);
	struct skua_pagelist_builder pages;
	int err;

	err = skua_ib_umem_describe(dev, umem, &pages);
	if (err)
		return err;
	params->pages = &pages.list;
	err = describe(mr, ibpd, params);
	/* The device has read the list, or never will: one that died was reset before this. */
	skua_pagelist_free(dev, &pages);
	return err;
}

/* Pin memory of a program, and have it described to the device by @describe. */
static struct ib_umem *
skua_ib_pin_mr(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start, int access,
	       struct skua_mr_params *params,
	       int (*describe)(struct skua_ib_mr *mr, struct ib_pd *ibpd,
			       struct skua_mr_params *params))
{
	struct ib_umem *umem;
	int err;

	umem = ib_umem_get_va(ibpd->device, start, params->length, access & ~IB_ACCESS_OPTIONAL);
	if (IS_ERR(umem))
		return umem;
	err = skua_ib_describe_umem(mr, ibpd, umem, params, describe);
	if (err) {
		ib_umem_release(umem);
		return ERR_PTR(err);
	}
	return umem;
}

/* A region of length 0 has no memory (MR-8), and no umem. */
static struct ib_umem *
skua_ib_describe_mr(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start, int access,
		    struct skua_mr_params *params,
		    int (*describe)(struct skua_ib_mr *mr, struct ib_pd *ibpd,
				    struct skua_mr_params *params))
{
	if (params->length)
		return skua_ib_pin_mr(mr, ibpd, start, access, params, describe);
	return ERR_PTR(describe(mr, ibpd, params));
}

/*
 * All addresses, or some of them. Windows do not follow pages that move, and such pages are not
 * made persistent (FLU-14).
 */
static int skua_ib_create_odp_mr(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start, int access,
				 struct skua_mr_params *params)
{
	u64 end;

	/* Faults are served by works of a program's context. */
	if (!ibpd->uobject || access & (IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_PERSISTENT))
		return -EOPNOTSUPP;
	if (params->length == U64_MAX) {
		if (start || params->iova)
			return -EINVAL;
		params->length = 0;
	} else if (check_add_overflow(start, params->length, &end)) {
		return -EINVAL;
	}
	return skua_ib_odp_create(mr, ibpd, start, params);
}

struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				  struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mr_params params = {
		.type = SKUA_MR_REGULAR,
		.access = skua_ib_access(dev, access),
		.iova = iova,
		.length = length,
	};
	bool on_demand = access & IB_ACCESS_ON_DEMAND;
	struct skua_ib_mr *mr;
	struct ib_umem *umem;
	int err;

	if (dmah || access & ~SKUA_IB_MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (length > ibpd->device->attrs.max_mr_size && !(on_demand && length == U64_MAX))
		return ERR_PTR(-EINVAL);
	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	/* The core sets these two for some of its methods only. */
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	if (on_demand && length) {
		err = skua_ib_create_odp_mr(mr, ibpd, start, access, &params);
		if (err) {
			kfree(mr);
			return ERR_PTR(err);
		}
		mr->access = access;
		return &mr->ibmr;
	}
	umem = skua_ib_describe_mr(mr, ibpd, start, access, &params, skua_ib_create_mr);
	if (IS_ERR(umem)) {
		kfree(mr);
		return ERR_CAST(umem);
	}
	skua_ib_mr_set_umem(mr, umem);
	mr->access = access;
	return &mr->ibmr;
}

/*
 * The region keeps its key, and if this fails, all that it was. Memory that was pinned for reading
 * is pinned anew if it is to be written now.
 */
struct ib_mr *skua_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova,
				    int access, struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibmr->device);
	struct skua_ib_mr *mr = to_skua_ib_mr(ibmr);
	struct skua_mr_params params = {};
	struct ib_umem *umem;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	/* Pages that come and go are registered once, and so are those that may be revoked. */
	if (mr->odp || mr->is_dmabuf ||
	    (flags & IB_MR_REREG_ACCESS && access & IB_ACCESS_ON_DEMAND))
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_PD)
		params.change |= SKUA_MR_SET_PD;
	if (flags & IB_MR_REREG_ACCESS) {
		if (access & ~SKUA_IB_MR_ACCESS)
			return ERR_PTR(-EOPNOTSUPP);
		params.change |= SKUA_MR_SET_ACCESS;
		params.access = skua_ib_access(dev, access);
	} else {
		access = mr->access;
	}
	if (flags & IB_MR_REREG_TRANS) {
		if (length > ibmr->device->attrs.max_mr_size)
			return ERR_PTR(-EINVAL);
		params.change |= SKUA_MR_SET_PAGES;
		params.iova = iova;
		params.length = length;
	} else if (mr->umem && !mr->umem->writable && ib_access_writable(access)) {
		/* Of another process, which shares the context: it is not found by its address. */
		if (mr->umem->owning_mm != current->mm)
			return ERR_PTR(-EINVAL);
		start = mr->umem->address;
		params.change |= SKUA_MR_SET_PAGES;
		params.iova = ibmr->iova;
		params.length = mr->umem->length;
	}

	umem = skua_ib_describe_mr(mr, ibpd, start, access, &params, skua_ib_modify_mr);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	if (params.change & SKUA_MR_SET_PAGES) {
		ib_umem_release(mr->umem);
		skua_ib_mr_set_umem(mr, umem);
	}
	mr->access = access;
	return NULL;
}

/* Device memory is named by offsets. No window is bound to it. */
struct ib_mr *skua_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct skua_mr_params params = {
		.type = SKUA_MR_DM,
		.access = skua_ib_access(to_skua_dev(ibpd->device), attr->access_flags),
		.length = attr->length,
		.dmn = to_skua_ib_dm(ibdm)->dmn,
		.dm_offset = attr->offset,
	};
	struct skua_ib_mr *mr;
	int err;

	if (attr->access_flags & ~SKUA_IB_DM_MR_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.length = attr->length;
	err = skua_ib_create_mr(mr, ibpd, &params);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static int skua_ib_alloc_list(struct skua_ib_mr *mr, struct skua_dev *dev)
{
	size_t size = mr->capacity * sizeof(*mr->list);

	mr->list = kzalloc(size, GFP_KERNEL);
	if (!mr->list)
		return -ENOMEM;
	mr->list_dma = dma_map_single(skua_dma_dev(dev), mr->list, size, DMA_TO_DEVICE);
	if (dma_mapping_error(skua_dma_dev(dev), mr->list_dma)) {
		kfree(mr->list);
		return -ENOMEM;
	}
	return 0;
}

static void skua_ib_free_list(struct skua_ib_mr *mr, struct skua_dev *dev)
{
	if (!mr->list)
		return;
	dma_unmap_single(skua_dma_dev(dev), mr->list_dma, mr->capacity * sizeof(*mr->list),
			 DMA_TO_DEVICE);
	kfree(mr->list);
}

struct ib_mr *skua_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct skua_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mr_params params = { .type = SKUA_MR_FAST, .capacity = max_num_sg };
	bool gaps = type == IB_MR_TYPE_SG_GAPS;
	struct skua_ib_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG && !(gaps && skua_ib_has_sg_gaps(dev)))
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > skua_ib_max_fast_list(dev))
		return ERR_PTR(-EINVAL);
	if (gaps)
		params.capacity *= SKUA_PIECE_ENTRIES;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->capacity = params.capacity;
	err = skua_ib_alloc_list(mr, dev);
	if (err)
		goto err_mr;
	err = skua_ib_create_mr(mr, ibpd, &params);
	if (err)
		goto err_list;
	return &mr->ibmr;

err_list:
	skua_ib_free_list(mr, dev);
err_mr:
	kfree(mr);
	return ERR_PTR(err);
}

static int skua_ib_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct skua_ib_mr *mr = to_skua_ib_mr(ibmr);

	if (mr->npages == mr->capacity)
		return -ENOMEM;
	mr->list[mr->npages++] = cpu_to_le64(addr | SKUA_PL_PRESENT);
	return 0;
}

static int skua_ib_set_pages(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			     unsigned int *offset)
{
	if (!is_power_of_2(ibmr->page_size) || ibmr->page_size < SKUA_PAGE_SIZE)
		return -EINVAL;
	return ib_sg_to_pages(ibmr, sg, nents, offset, skua_ib_set_page);
}

/* Bytes of the last pieces of @mr, up to @n of them. */
static u64 skua_ib_last_bytes(const struct skua_ib_mr *mr, unsigned int n)
{
	u64 bytes = 0;
	u32 i;

	for (i = mr->npages - min(n, mr->npages); i < mr->npages; i++)
		bytes += le32_to_cpu(mr->pieces[i].length);
	return bytes;
}

/* With another piece of @length bytes, would too many have too few bytes together (FST-10)? */
static bool skua_ib_too_dense(const struct skua_ib_mr *mr, u32 length)
{
	return mr->npages >= SKUA_PIECES_RUN - 1 &&
	       skua_ib_last_bytes(mr, SKUA_PIECES_RUN - 1) + length < SKUA_PIECES_RUN_BYTES;
}

/*
 * The region begins where its first piece does, because consumers expect an address that tells it
 * from other regions. The pieces that do not fit, or that the device would refuse, are left to the
 * consumer.
 */
static int skua_ib_set_pieces(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			      unsigned int *offset)
{
	struct skua_ib_mr *mr = to_skua_ib_mr(ibmr);
	unsigned int skip = offset ? *offset : 0;
	struct scatterlist *piece;
	int i;

	if (nents <= 0 || skip >= sg_dma_len(sg))
		return -EINVAL;
	ibmr->iova = sg_dma_address(sg) + skip;
	ibmr->length = 0;
	for_each_sg(sg, piece, nents, i) {
		u32 length = sg_dma_len(piece) - skip;

		if ((mr->npages + 1) * SKUA_PIECE_ENTRIES > mr->capacity ||
		    skua_ib_too_dense(mr, length))
			break;
		if (!length)
			return -EINVAL;
		mr->pieces[mr->npages++] = (struct skua_piece) {
			.addr = cpu_to_le64(sg_dma_address(piece) + skip),
			.length = cpu_to_le32(length),
		};
		ibmr->length += length;
		skip = 0;
	}
	if (offset)
		*offset = 0;
	return i;
}

int skua_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct device *device = skua_dma_dev(to_skua_dev(ibmr->device));
	struct skua_ib_mr *mr = to_skua_ib_mr(ibmr);
	size_t size = mr->capacity * sizeof(*mr->list);
	int mapped;

	mr->npages = 0;
	dma_sync_single_for_cpu(device, mr->list_dma, size, DMA_TO_DEVICE);
	mapped = skua_ib_is_gapped(ibmr) ? skua_ib_set_pieces(ibmr, sg, nents, offset) :
					   skua_ib_set_pages(ibmr, sg, nents, offset);
	dma_sync_single_for_device(device, mr->list_dma, size, DMA_TO_DEVICE);
	return mapped;
}

int skua_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibmr->device);
	struct skua_ib_mr *mr = to_skua_ib_mr(ibmr);
	int err;

	if (mr->odp)
		skua_ib_odp_destroy(mr);
	err = mr->is_dmabuf ? skua_ib_dmabuf_destroy(mr) : skua_cmd_destroy_mr(dev, mr->key);
	if (err)
		return err;
	skua_ib_free_list(mr, dev);
	ib_umem_release(mr->umem);
	kfree(mr);
	return 0;
}
