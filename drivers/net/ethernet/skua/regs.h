/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: registers. Functions return 0 or an errno; each error was reported. All may sleep.
 */
#ifndef SKUA_NIC_REGS_H
#define SKUA_NIC_REGS_H

#include <linux/types.h>

struct devlink_fmsg;
struct skua_nic;

int skua_regs_identify(struct skua_nic *nic);
int skua_regs_reset(struct skua_nic *nic);
int skua_regs_negotiate(struct skua_nic *nic);
int skua_regs_enable(struct skua_nic *nic);
u32 skua_regs_status(struct skua_nic *nic);
u32 skua_regs_health(struct skua_nic *nic);
/* Of enum skua_health. */
const char *skua_health_name(u32 code);
void skua_regs_dump(struct skua_nic *nic, struct devlink_fmsg *fmsg);

#endif /* SKUA_NIC_REGS_H */
