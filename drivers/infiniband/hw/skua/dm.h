/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: device memory of programs.
 */
#ifndef SKUA_IB_DM_H
#define SKUA_IB_DM_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct skua_dev;

/**
 * struct skua_ib_dm - some device memory
 * @ibdm: as the core knows it
 * @dmn: its number
 */
struct skua_ib_dm {
	struct ib_dm ibdm;
	u32 dmn;
};

static inline struct skua_ib_dm *to_skua_ib_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct skua_ib_dm, ibdm);
}

/* The most that a program may have; the core keeps lengths in 32 bits. */
u64 skua_ib_max_dm(const struct skua_dev *dev);
struct ib_dm *skua_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibucontext,
			       struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int skua_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
/* The command that copies between device memory and a program's memory. */
extern const struct uapi_definition skua_ib_dm_uapi[];

#endif /* SKUA_IB_DM_H */
