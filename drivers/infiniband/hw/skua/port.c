// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The port: its state and MTU follow the network interface.
 */
#include <linux/etherdevice.h>
#include <linux/skua/command.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "skua_ib.h"

int skua_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct skua_dev *dev = to_skua_dev(ibdev);
	struct net_device *netdev = dev->netdev;
	bool up = netif_running(netdev) && netif_carrier_ok(netdev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	if (up)
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	else if (netif_running(netdev))
		attr->phys_state = IB_PORT_PHYS_STATE_POLLING;
	else
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = iboe_get_mtu(netdev->max_mtu);
	attr->active_mtu = iboe_get_mtu(READ_ONCE(netdev->mtu));
	attr->gid_tbl_len = dev->limits.gid_table_len;
	attr->pkey_tbl_len = dev->limits.pkey_table_len;
	attr->ip_gids = true;
	if (skua_has(dev, SKUA_F_UD))
		attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = dev->limits.max_msg_size;
	attr->max_vl_num = 1;
	return ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width);
}

/* In units of 100 Mb/s; 0 is unknown. */
int skua_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct skua_port_attr attr;
	int err;

	err = skua_cmd_query_port(to_skua_dev(ibdev), &attr);
	if (err)
		return err;
	*speed = le32_to_cpu(attr.speed_mbps) / 100;
	return 0;
}

int skua_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *immutable)
{
	struct skua_dev *dev = to_skua_dev(ibdev);

	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	if (!skua_has(dev, SKUA_F_UD)) {
		/* No QP 1: no MADs, nor the connection managers on them. */
		immutable->core_cap_flags &= ~(RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_CM);
		immutable->max_mad_size = 0;
	}
	immutable->gid_tbl_len = dev->limits.gid_table_len;
	immutable->pkey_tbl_len = dev->limits.pkey_table_len;
	return 0;
}

enum rdma_link_layer skua_ib_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int skua_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index >= to_skua_dev(ibdev)->limits.pkey_table_len)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

#ifdef SKUA_IB_OLD_PORT_EVENTS

static void skua_ib_port_changed(struct skua_ib_dev *dev)
{
	struct net_device *netdev = dev->dev->netdev;
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = 1,
	};
	enum ib_port_state state;

	state = netif_running(netdev) && netif_carrier_ok(netdev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	event.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;

	mutex_lock(&dev->lock);
	if (state != dev->port_state) {
		dev->port_state = state;
		if (dev->registered)
			ib_dispatch_event(&event);
	}
	mutex_unlock(&dev->lock);
}

#else

/* The core watches the netdev, but not while it is a part of a bond. */
static void skua_ib_port_changed(struct skua_ib_dev *dev)
{
	struct net_device *netdev = dev->dev->netdev;

	mutex_lock(&dev->lock);
	if (dev->registered && netif_is_lag_port(netdev))
		ib_dispatch_port_state_event(&dev->ibdev, netdev);
	mutex_unlock(&dev->lock);
}

#endif

static int skua_ib_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct skua_ib_dev *dev = container_of(nb, struct skua_ib_dev, netdev_notifier);

	if (netdev_notifier_info_to_dev(ptr) != dev->dev->netdev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_DOWN:
		skua_ib_port_changed(dev);
		break;
	}
	return NOTIFY_DONE;
}

int skua_ib_port_events_start(struct skua_ib_dev *dev)
{
	dev->netdev_notifier.notifier_call = skua_ib_netdev_event;
	return register_netdevice_notifier(&dev->netdev_notifier);
}

void skua_ib_port_events_stop(struct skua_ib_dev *dev)
{
	unregister_netdevice_notifier(&dev->netdev_notifier);
}
