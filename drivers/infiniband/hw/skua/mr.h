/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: memory regions.
 */
#ifndef SKUA_IB_MR_H
#define SKUA_IB_MR_H

#include <rdma/ib_verbs.h>

struct ib_dmah;
struct ib_umem;
struct skua_ib_odp;
struct skua_dev;
struct skua_mr_params;
struct skua_piece;

/**
 * struct skua_ib_mr - a memory region
 * @ibmr: as the core knows it
 * @umem: memory of a program, or of a dma-buf, pinned
 * @pinned_pages: of @umem, for readers whom no lock keeps from a @umem that is replaced
 * @is_dmabuf: @umem is a struct ib_umem_dmabuf
 * @odp: memory of a program, on demand
 * @access: what the program has asked for
 * @key: as it was created; a fast registration changes its low 8 bits
 * @capacity: entries that the list of a fast registration may have; 0: it is no MR for that
 * @npages: pages or pieces of the next fast registration
 * @list: its pages, which the device reads when it carries out the registration
 * @pieces: its pieces instead, of an IB_MR_TYPE_SG_GAPS
 * @list_dma: where the device finds them
 */
struct skua_ib_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
	u32 pinned_pages;
	bool is_dmabuf;
	struct skua_ib_odp *odp;
	int access;
	u32 key;
	u32 capacity;
	u32 npages;
	union {
		__le64 *list;
		struct skua_piece *pieces;
	};
	dma_addr_t list_dma;
};

static inline struct skua_ib_mr *to_skua_ib_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct skua_ib_mr, ibmr);
}

/* What it had before is for the caller to release. */
void skua_ib_mr_set_umem(struct skua_ib_mr *mr, struct ib_umem *umem);

/* Registered with lists of pieces. */
static inline bool skua_ib_is_gapped(const struct ib_mr *ibmr)
{
	return ibmr->type == IB_MR_TYPE_SG_GAPS;
}

/*
 * Access flags that reg_user_mr accepts. REMOTE_ATOMIC is accepted even without atomics, and
 * MW_BIND without windows, because programs always set them; they then grant nothing. HUGETLB is
 * ignored: the page size is taken from the umem. The core lets those of FLUSH through only if the
 * device has them, and ON_DEMAND likewise.
 */
#define SKUA_IB_MR_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
			   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
			   IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL |	\
			   IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT |	\
			   IB_ACCESS_ON_DEMAND)

/* Of verbs' access flags, the rights that the device can give. */
u32 skua_ib_access(const struct skua_dev *dev, int access);
/* Of verbs' access flags, the rights to flush that the device can give. */
u32 skua_ib_flush_rights(const struct skua_dev *dev, int access);
/* Rights of a region of the kernel, as the device has them. */
u32 skua_ib_kernel_access(struct skua_dev *dev, int access);

/* Create the region that @params describe; its PD is filled in here. */
int skua_ib_create_mr(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct skua_mr_params *params);
/* Describe the memory to the device by @describe, a command, to which @params belong. */
int skua_ib_describe_umem(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct ib_umem *umem,
			  struct skua_mr_params *params,
			  int (*describe)(struct skua_ib_mr *mr, struct ib_pd *ibpd,
					  struct skua_mr_params *params));

struct ib_mr *skua_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int skua_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
struct ib_mr *skua_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
				  struct ib_dmah *dmah, struct ib_udata *udata);
struct ib_mr *skua_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova,
				    int access, struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *skua_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs);
int skua_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

#endif /* SKUA_IB_MR_H */
