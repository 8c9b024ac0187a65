/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: a program that has opened the device.
 */
#ifndef SKUA_IB_UCONTEXT_H
#define SKUA_IB_UCONTEXT_H

#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include <linux/skua/device.h>

#include "odp.h"

enum skua_ib_mmap_kind {
	SKUA_IB_MMAP_DB,
	SKUA_IB_MMAP_INFO,
};

struct skua_ib_mmap {
	struct rdma_user_mmap_entry entry;
	enum skua_ib_mmap_kind kind;
};

/**
 * struct skua_ib_ucontext - an opening of the device by a program
 * @ibucontext: as the core knows it
 * @node: in the device's list
 * @db: its doorbell pages
 * @info: its information page
 * @db_mmap: the doorbell pages, for mmap
 * @info_mmap: the information page, for mmap
 * @dbr_lock: @dbr_pages
 * @dbr_pages: pages of the program that hold doorbell records, by process and address
 * @odp: works for its regions on demand
 */
struct skua_ib_ucontext {
	struct ib_ucontext ibucontext;
	struct list_head node;
	struct skua_db_pages db;
	struct page *info;
	struct skua_ib_mmap *db_mmap;
	struct skua_ib_mmap *info_mmap;
	struct mutex dbr_lock;		/* dbr_pages */
	struct rb_root dbr_pages;
	struct skua_ib_odp_works odp;
};

static inline struct skua_ib_ucontext *to_skua_ib_ucontext(struct ib_ucontext *ibucontext)
{
	return container_of(ibucontext, struct skua_ib_ucontext, ibucontext);
}

static inline struct skua_info_page *skua_ib_info(struct skua_ib_ucontext *ucontext)
{
	return page_address(ucontext->info);
}

int skua_ib_alloc_ucontext(struct ib_ucontext *ibucontext, struct ib_udata *udata);
void skua_ib_dealloc_ucontext(struct ib_ucontext *ibucontext);
int skua_ib_query_ucontext(struct ib_ucontext *ibucontext, struct uverbs_attr_bundle *attrs);
/* Commands of uverbs to which we add attributes. */
extern const struct uapi_definition skua_ib_uapi[];
void skua_ib_disassociate_ucontext(struct ib_ucontext *ibucontext);
int skua_ib_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
void skua_ib_mmap_free(struct rdma_user_mmap_entry *entry);
/* No completion will come any more: say so to the program. */
void skua_ib_ucontext_dead(struct skua_ib_ucontext *ucontext);

#endif /* SKUA_IB_UCONTEXT_H */
