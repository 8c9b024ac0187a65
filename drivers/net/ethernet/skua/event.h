/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: EQEs on their way to the owners of objects (linux/skua/event.h).
 */
#ifndef SKUA_NIC_EVENT_H
#define SKUA_NIC_EVENT_H

#include <linux/types.h>

#include <skua/eqe.h>

struct skua_nic;

void skua_event_comp(struct skua_nic *nic, u32 cqn);
void skua_event_fault(struct skua_nic *nic, const struct skua_fault_eqe *eqe);
void skua_event_async(struct skua_nic *nic, const struct skua_async_eqe *eqe);

#endif /* SKUA_NIC_EVENT_H */
