/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the devlink instance. All functions are called under its lock, which is the outermost
 * of the driver's locks: it is taken before RTNL, and inside of the device's lock.
 */
#ifndef SKUA_DEVLINK_H
#define SKUA_DEVLINK_H

#include <linux/types.h>

#include <net/devlink.h>

struct skua_nic;

extern const struct devlink_ops skua_devlink_ops;

/* The parameters, with their defaults. */
int skua_devlink_params_register(struct skua_nic *nic);
void skua_devlink_params_unregister(struct skua_nic *nic);
/* What the parameter enable_rdma was when the device was brought up last. */
bool skua_devlink_rdma_is_enabled(struct skua_nic *nic);

#endif /* SKUA_DEVLINK_H */
