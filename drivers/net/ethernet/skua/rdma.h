/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the auxiliary device that skua_ib binds to.
 */
#ifndef SKUA_RDMA_H
#define SKUA_RDMA_H

struct skua_nic;

int skua_rdma_add(struct skua_nic *nic);
void skua_rdma_remove(struct skua_nic *nic);

#endif /* SKUA_RDMA_H */
