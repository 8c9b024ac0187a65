/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How Linux 6.12 differs from the kernel that skua.ko is written for, 7.2. */
#ifndef SKUA_COMPAT_H
#define SKUA_COMPAT_H

#include <linux/version.h>
#include <net/devlink.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)

/* The number of rings is the answer to one of the questions about rules for receiving. */
#define SKUA_OLD_RXNFC	1

/* The period of grace of a health reporter is an argument. */
#define SKUA_OLD_REPORTER	1

/* Parameters are passed by value. */
#define devl_param_driverinit_value_set(devlink, id, value) \
	devl_param_driverinit_value_set(devlink, id, *(value))

#endif

#endif /* SKUA_COMPAT_H */
