/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_ib.ko: address vectors, and the address handles that hold one each.
 */
#ifndef SKUA_IB_AH_H
#define SKUA_IB_AH_H

#include <rdma/ib_verbs.h>

#include <skua/wqe.h>

/**
 * struct skua_ib_ah - the way to a QP that takes datagrams
 * @ibah: as the core knows it
 * @av: as WQEs have it
 */
struct skua_ib_ah {
	struct ib_ah ibah;
	struct skua_av av;
};

static inline struct skua_ib_ah *to_skua_ib_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct skua_ib_ah, ibah);
}

/* -EINVAL if the device does not take it. */
int skua_ib_set_av(struct skua_av *av, const struct rdma_ah_attr *ah);
void skua_ib_get_av(struct rdma_ah_attr *ah, const struct skua_av *av);
int skua_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int skua_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int skua_ib_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif /* SKUA_IB_AH_H */
