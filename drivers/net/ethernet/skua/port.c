// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The port's settings. Several parties own flags of it: the netdev whether it is enabled and
 * what it receives, RDMA whether RoCEv2 packets are its own.
 */
#include <linux/etherdevice.h>

#include "cmd.h"
#include "health.h"
#include "skua.h"

int skua_port_update_flags(struct skua_nic *nic, u32 mask, u32 flags)
{
	struct skua_cmd_set_port set = { .mask = cpu_to_le32(SKUA_PORT_SET_FLAGS) };
	int err = 0;
	u32 new;

	mutex_lock(&nic->port.lock);
	new = (nic->port.flags & ~mask) | (flags & mask);
	if (new == nic->port.flags)
		goto out;
	set.flags = cpu_to_le32(new);
	err = skua_cmd_set_port(nic, &set);
	if (!err)
		nic->port.flags = new;
out:
	mutex_unlock(&nic->port.lock);
	return err;
}

int skua_port_set_roce(struct skua_dev *dev, bool on)
{
	/* What was set before it died says nothing. */
	if (!skua_dev_alive(dev))
		return -EIO;
	return skua_port_update_flags(to_skua_nic(dev), SKUA_PORT_F_ROCE,
				      on ? SKUA_PORT_F_ROCE : 0);
}
EXPORT_SYMBOL_NS_GPL(skua_port_set_roce, SKUA_NS);

int skua_port_set_mac(struct skua_nic *nic, const u8 *mac)
{
	struct skua_cmd_set_port set = { .mask = cpu_to_le32(SKUA_PORT_SET_MAC) };

	ether_addr_copy(set.mac, mac);
	return skua_cmd_set_port(nic, &set);
}

int skua_port_set_receiver(struct skua_nic *nic, u32 mtu, const u8 *mac, u32 qpn)
{
	struct skua_cmd_set_port set = {
		.mask = cpu_to_le32(SKUA_PORT_SET_MTU | SKUA_PORT_SET_MAC | SKUA_PORT_SET_RX_QP),
		.mtu = cpu_to_le32(mtu),
		.rx_qpn = cpu_to_le32(qpn),
	};

	ether_addr_copy(set.mac, mac);
	return skua_cmd_set_port(nic, &set);
}
