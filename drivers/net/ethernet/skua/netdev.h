/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: the netdev, as the rest of the driver knows it.
 */
#ifndef SKUA_NETDEV_H
#define SKUA_NETDEV_H

struct skua_nic;

int skua_netdev_create(struct skua_nic *nic);
void skua_netdev_destroy(struct skua_nic *nic);
/* The link's state may have changed. May sleep. */
void skua_netdev_link_changed(struct skua_nic *nic);
/* Events have ended, and with them what repeats them: asking for the link's state. May sleep. */
void skua_netdev_link_stop(struct skua_nic *nic);
/* The device is dead: nothing will be sent or received any more. */
void skua_netdev_dead(struct skua_nic *nic);
/* Take the netdev off a dead device; it stays as it is, without a link. May sleep. */
void skua_netdev_detach(struct skua_nic *nic);
/* The device was brought up anew: go on where detaching ended. May sleep. */
int skua_netdev_attach(struct skua_nic *nic);

#endif /* SKUA_NETDEV_H */
