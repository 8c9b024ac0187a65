/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What Linux 6.12 lacks of the kernel that the netdev is written for, 7.2. */
#ifndef SKUA_COMPAT_H
#define SKUA_COMPAT_H

#include <linux/ethtool.h>
#include <linux/version.h>

u32 skua_get_rx_ring_count(struct net_device *netdev);

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)

/* The number of rings is the answer to one of the questions about rules for receiving. */
static inline int skua_get_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *info, u32 *rules)
{
	if (info->cmd != ETHTOOL_GRXRINGS)
		return -EOPNOTSUPP;
	info->data = skua_get_rx_ring_count(netdev);
	return 0;
}

#define SKUA_RX_RING_COUNT_OP	.get_rxnfc = skua_get_rxnfc

#else

#define SKUA_RX_RING_COUNT_OP	.get_rx_ring_count = skua_get_rx_ring_count

#endif

#endif /* SKUA_COMPAT_H */
