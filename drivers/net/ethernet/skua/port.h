/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the port's settings.
 */
#ifndef SKUA_PORT_H
#define SKUA_PORT_H

#include <linux/mutex.h>
#include <linux/types.h>

struct skua_nic;

/**
 * struct skua_port - the port's settings that several write
 * @lock: the flags, the order of the commands that set them, and the netdev's carrier
 * @flags: SKUA_PORT_F_* as the device has them
 */
struct skua_port {
	struct mutex lock;		/* see above */
	u32 flags;
};

int skua_port_update_flags(struct skua_nic *nic, u32 mask, u32 flags);
int skua_port_set_mac(struct skua_nic *nic, const u8 *mac);
/* At once, or, on error, not at all. */
int skua_port_set_receiver(struct skua_nic *nic, u32 mtu, const u8 *mac, u32 qpn);

#endif /* SKUA_PORT_H */
