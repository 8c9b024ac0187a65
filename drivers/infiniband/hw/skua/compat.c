// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What Linux 6.12 lacks of the interfaces that the driver is written to.
 */
#include "skua_ib.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)

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

#endif

#ifdef SKUA_IB_OLD_VERBS

int skua_ib_old_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			  struct uverbs_attr_bundle *attrs)
{
	return attrs ? skua_ib_create_user_cq(ibcq, attr, attrs) :
		       skua_ib_create_cq(ibcq, attr, NULL);
}

struct ib_mr *skua_ib_old_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				      int access, struct ib_udata *udata)
{
	return skua_ib_reg_user_mr(ibpd, start, length, iova, access, NULL, udata);
}

#endif
