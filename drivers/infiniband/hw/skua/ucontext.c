// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: each opening of the device by a program has doorbell pages of its own, and a page
 * in which the kernel tells it whether its device is alive.
 *
 * The information page stays mapped when the context is taken away from the device (unbinding,
 * or moving the device to another network namespace), while the core replaces the doorbell pages
 * by an empty one. So a program that polls learns that nothing will come, and its doorbells do
 * no harm. That is why the page is inserted here as memory and not mapped as I/O.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include <rdma/skua-abi.h>

#include "dm.h"
#include "pd.h"
#include "skua_ib.h"
#include "ucontext.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static_assert(SKUA_IB_ATTR_QUERY_CONTEXT_RESP == 1 << UVERBS_ID_NS_SHIFT);

static struct skua_ib_mmap *skua_ib_mmap_add(struct skua_ib_ucontext *ucontext,
					     enum skua_ib_mmap_kind kind, size_t size)
{
	struct skua_ib_mmap *map;
	int err;

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->kind = kind;
	err = rdma_user_mmap_entry_insert(&ucontext->ibucontext, &map->entry, size);
	if (err) {
		kfree(map);
		return ERR_PTR(err);
	}
	return map;
}

void skua_ib_mmap_free(struct rdma_user_mmap_entry *entry)
{
	kfree(container_of(entry, struct skua_ib_mmap, entry));
}

void skua_ib_ucontext_dead(struct skua_ib_ucontext *ucontext)
{
	WRITE_ONCE(skua_ib_info(ucontext)->state, SKUA_INFO_DEAD);
}

/* The device may die at any time: from here on the page is told, or is so at once. */
static void skua_ib_ucontext_publish(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext)
{
	mutex_lock(&dev->lock);
	list_add(&ucontext->node, &dev->ucontexts);
	if (dev->dead)
		skua_ib_ucontext_dead(ucontext);
	else
		skua_ib_clock_start(dev, ucontext);
	mutex_unlock(&dev->lock);
}

static void skua_ib_ucontext_withdraw(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext)
{
	mutex_lock(&dev->lock);
	list_del(&ucontext->node);
	mutex_unlock(&dev->lock);
}

static void skua_ib_ucontext_describe(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext,
				      struct skua_alloc_ucontext_resp *resp)
{
	const struct skua_limits *limits = &dev->dev->limits;

	resp->features = dev->dev->features;
	resp->db_page_key = rdma_user_mmap_get_offset(&ucontext->db_mmap->entry);
	resp->info_page_key = rdma_user_mmap_get_offset(&ucontext->info_mmap->entry);
	resp->db_page_size = SKUA_DB_PAGES_SIZE;
	resp->info_page_size = PAGE_SIZE;
	resp->max_qp_wr = skua_ib_max_qp_wr(dev->dev);
	resp->max_cqe = limits->max_cqe;
	resp->max_inline = limits->max_inline;
	resp->max_send_sge = limits->max_send_sge;
	resp->max_recv_sge = limits->max_recv_sge;
	resp->max_srq_wr = skua_has(dev->dev, SKUA_F_SRQ) ? limits->max_srq_entries : 0;
	resp->ece_options = limits->ece_options;
	resp->max_tso = skua_has(dev->dev, SKUA_F_TSO) ? limits->max_tso : 0;
}

/* Another process has been given the descriptor, and imports the context. */
int skua_ib_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs)
{
	struct skua_alloc_ucontext_resp resp = {};

	skua_ib_ucontext_describe(to_skua_ib_dev(ibucontext->device),
				  to_skua_ib_ucontext(ibucontext), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, SKUA_IB_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(skua_ib_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(SKUA_IB_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct skua_alloc_ucontext_resp,
								    max_srq_wr),
						 UA_MANDATORY));

const struct uapi_definition skua_ib_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &skua_ib_query_context),
	UAPI_DEF_CHAIN(skua_ib_clock_uapi),
	UAPI_DEF_CHAIN(skua_ib_pd_uapi),
	UAPI_DEF_CHAIN(skua_ib_dm_uapi),
	{}
};

int skua_ib_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata)
{
	struct skua_ib_ucontext *ucontext = to_skua_ib_ucontext(ibucontext);
	struct skua_ib_dev *dev = to_skua_ib_dev(ibucontext->device);
	struct skua_alloc_ucontext_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	mutex_init(&ucontext->dbr_lock);
	ucontext->dbr_pages = RB_ROOT;
	mutex_init(&ucontext->odp.lock);
	err = skua_db_pages_alloc(dev->dev, &ucontext->db);
	if (err)
		return err;
	ucontext->info = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!ucontext->info) {
		err = -ENOMEM;
		goto err_db;
	}
	skua_ib_info(ucontext)->state = SKUA_INFO_ALIVE;
	skua_ib_info(ucontext)->clock_khz = dev->dev->limits.clock_khz;

	ucontext->db_mmap = skua_ib_mmap_add(ucontext, SKUA_IB_MMAP_DB, SKUA_DB_PAGES_SIZE);
	if (IS_ERR(ucontext->db_mmap)) {
		err = PTR_ERR(ucontext->db_mmap);
		goto err_info;
	}
	ucontext->info_mmap = skua_ib_mmap_add(ucontext, SKUA_IB_MMAP_INFO, PAGE_SIZE);
	if (IS_ERR(ucontext->info_mmap)) {
		err = PTR_ERR(ucontext->info_mmap);
		goto err_db_mmap;
	}

	skua_ib_ucontext_publish(dev, ucontext);
	skua_ib_ucontext_describe(dev, ucontext, &resp);
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_withdraw;
	return 0;

err_withdraw:
	skua_ib_ucontext_withdraw(dev, ucontext);
	rdma_user_mmap_entry_remove(&ucontext->info_mmap->entry);
err_db_mmap:
	rdma_user_mmap_entry_remove(&ucontext->db_mmap->entry);
err_info:
	__free_page(ucontext->info);
err_db:
	skua_db_pages_free(dev->dev, &ucontext->db);
	return err;
}

void skua_ib_dealloc_ucontext(struct ib_ucontext *ibucontext)
{
	struct skua_ib_ucontext *ucontext = to_skua_ib_ucontext(ibucontext);
	struct skua_ib_dev *dev = to_skua_ib_dev(ibucontext->device);

	WARN_ON(!RB_EMPTY_ROOT(&ucontext->dbr_pages));
	skua_ib_odp_end_works(&ucontext->odp);
	skua_ib_ucontext_withdraw(dev, ucontext);
	/* No mapping of the doorbell pages is left: they may be given out again. */
	rdma_user_mmap_entry_remove(&ucontext->info_mmap->entry);
	rdma_user_mmap_entry_remove(&ucontext->db_mmap->entry);
	/* Mappings hold references to the information page. */
	__free_page(ucontext->info);
	skua_db_pages_free(dev->dev, &ucontext->db);
}

/* All objects of the context are destroyed, and its doorbell pages unmapped. */
void skua_ib_disassociate_ucontext(struct ib_ucontext *ibucontext)
{
	skua_ib_ucontext_dead(to_skua_ib_ucontext(ibucontext));
}

static int skua_ib_mmap_info(struct skua_ib_ucontext *ucontext, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_mod(vma, VM_DONTEXPAND, VM_MAYWRITE);
	return vm_insert_page(vma, vma->vm_start, ucontext->info);
}

int skua_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma)
{
	struct skua_ib_ucontext *ucontext = to_skua_ib_ucontext(ibucontext);
	struct rdma_user_mmap_entry *entry;
	int err;

	/* Checks the size, too. */
	entry = rdma_user_mmap_entry_get(ibucontext, vma);
	if (!entry)
		return -EINVAL;

	switch (container_of(entry, struct skua_ib_mmap, entry)->kind) {
	case SKUA_IB_MMAP_DB:
		err = rdma_user_mmap_io(ibucontext, vma, PHYS_PFN(ucontext->db.phys),
					SKUA_DB_PAGES_SIZE, pgprot_device(vma->vm_page_prot),
					entry);
		break;
	case SKUA_IB_MMAP_INFO:
		err = skua_ib_mmap_info(ucontext, vma);
		break;
	default:
		err = -EINVAL;
	}
	rdma_user_mmap_entry_put(entry);
	return err;
}
