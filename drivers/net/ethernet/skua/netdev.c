// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The netdev: up and down, NAPI, settings. Frames are sent in tx.c and received in rx.c.
 *
 * Going up: rings, CQ, QP, receives posted, RESET to RTS, then the port is told where frames
 * go. Going down is the reverse; destroying the QP is the fence after which buffers are freed.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <net/netdev_queues.h>

#include <linux/skua/command.h>

#include "eth.h"

/* Completion vector of the rings. */
#define SKUA_ETH_VECTOR	0

static struct skua_eth *skua_eth(struct skua_nic *nic)
{
	return nic->dev.netdev ? netdev_priv(nic->dev.netdev) : NULL;
}

/* CQ */

static void skua_eth_comp(struct skua_cq_watch *watch)
{
	struct skua_eth *eth = container_of(watch, struct skua_eth, cq_watch);

	napi_schedule(&eth->napi);
}

static void skua_eth_cq_error(struct skua_cq_watch *watch)
{
	struct skua_eth *eth = container_of(watch, struct skua_eth, cq_watch);

	schedule_work(&eth->restart);
}

static int skua_eth_create_cq(struct skua_eth *eth)
{
	struct skua_dev *dev = &eth->nic->dev;
	struct skua_pagelist ring;
	struct skua_cq_params params = {
		.vector = SKUA_ETH_VECTOR,
		.ring = &ring,
	};
	u32 size;
	int err;

	/* A CQE for each WQE and each receive that can be outstanding: it cannot overflow. */
	size = roundup_pow_of_two(eth->tx.sq.blocks + eth->rx.rq.size);
	if (size > dev->limits.max_cqe)
		return -EINVAL;
	err = skua_mem_alloc(dev, &eth->cq_mem, size * sizeof(struct skua_cqe));
	if (err)
		return err;
	memset(&eth->cq, 0, sizeof(eth->cq));
	eth->cq.buf = eth->cq_mem.va;
	eth->cq.size = size;
	eth->cq.dbr = skua_dbr_alloc(dev, &eth->cq_dbr);
	if (!eth->cq.dbr) {
		err = -ENOMEM;
		goto err_mem;
	}

	skua_mem_describe(&eth->cq_mem, &ring);
	params.log_size = ilog2(size);
	params.dbr = eth->cq_dbr;
	err = skua_cmd_create_cq(dev, &params, &eth->cq_watch.cqn);
	if (err)
		goto err_dbr;

	eth->cq_watch.comp = skua_eth_comp;
	eth->cq_watch.error = skua_eth_cq_error;
	eth->cq_watch.vector = SKUA_ETH_VECTOR;
	err = skua_cq_watch(dev, &eth->cq_watch);
	if (err)
		goto err_destroy;
	return 0;

err_destroy:
	skua_cmd_destroy_cq(dev, eth->cq_watch.cqn);
err_dbr:
	skua_dbr_free(dev, eth->cq.dbr, eth->cq_dbr);
err_mem:
	skua_mem_free(dev, &eth->cq_mem);
	return err;
}

static void skua_eth_destroy_cq(struct skua_eth *eth)
{
	struct skua_dev *dev = &eth->nic->dev;

	skua_cmd_destroy_cq(dev, eth->cq_watch.cqn);
	skua_cq_unwatch(dev, &eth->cq_watch);
	skua_dbr_free(dev, eth->cq.dbr, eth->cq_dbr);
	skua_mem_free(dev, &eth->cq_mem);
}

/* QP */

static void skua_eth_qp_event(struct skua_qp_watch *watch, u8 type)
{
	struct skua_eth *eth = container_of(watch, struct skua_eth, qp_watch);

	schedule_work(&eth->restart);
}

static int skua_eth_create_qp(struct skua_eth *eth)
{
	struct skua_dev *dev = &eth->nic->dev;
	struct skua_pagelist sq, rq;
	struct skua_qp_params params = {
		.type = SKUA_QPT_ETH,
		.privileged = true,
		.pdn = eth->pdn,
		.send_cqn = eth->cq_watch.cqn,
		.recv_cqn = eth->cq_watch.cqn,
		.sq = &sq,
		.sq_dbr = eth->tx.dbr,
		.log_sq_blocks = ilog2(eth->tx.sq.blocks),
		.log_rq_size = ilog2(eth->rx.rq.size),
		.log_rq_stride = eth->rx.rq.log_stride,
		.rq = &rq,
		.rq_dbr = eth->rx.dbr,
	};
	int err;

	skua_mem_describe(&eth->tx.mem, &sq);
	skua_mem_describe(&eth->rx.mem, &rq);
	err = skua_cmd_create_qp(dev, &params, &eth->qp_watch.qpn);
	if (err)
		return err;
	eth->qp_watch.event = skua_eth_qp_event;
	err = skua_qp_watch(dev, &eth->qp_watch);
	if (err)
		skua_cmd_destroy_qp(dev, eth->qp_watch.qpn);
	return err;
}

static void skua_eth_destroy_qp(struct skua_eth *eth)
{
	struct skua_dev *dev = &eth->nic->dev;

	skua_cmd_destroy_qp(dev, eth->qp_watch.qpn);
	skua_qp_unwatch(dev, &eth->qp_watch);
}

static int skua_eth_start_qp(struct skua_eth *eth)
{
	static const u8 states[] = { SKUA_QPS_INIT, SKUA_QPS_RTR, SKUA_QPS_RTS };
	struct skua_qp_attr attr = {};
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		attr.state = states[i];
		err = skua_cmd_modify_qp(&eth->nic->dev, eth->qp_watch.qpn, SKUA_QP_ATTR_STATE,
					 &attr);
		if (err)
			return err;
	}
	return 0;
}

/* Receiving and completing */

static void skua_eth_complete(struct skua_eth *eth, const struct skua_cqe *cqe, int budget)
{
	u32 sq_ci = le32_to_cpu(cqe->sq_ci);

	if (unlikely(cqe->status != SKUA_CQE_SUCCESS && cqe->status != SKUA_CQE_WR_FLUSH_ERR)) {
		if (net_ratelimit())
			netdev_err(eth->netdev, "%s failed, status %u, cause %u: restarting\n",
				   cqe->opcode & SKUA_CQE_OPCODE_RECV ? "receive" : "send",
				   cqe->status, cqe->vendor_err);
		schedule_work(&eth->restart);
	}
	if (cqe->opcode & SKUA_CQE_OPCODE_RECV)
		skua_rx_complete(eth, cqe);
	else if (sq_ci - eth->tx.sq.ci <= READ_ONCE(eth->tx.sq.pi) - eth->tx.sq.ci)
		skua_tx_complete(eth, sq_ci, budget);
	else
		skua_health_dead(eth->nic, "it completed a frame that was not sent");
}

static int skua_eth_poll(struct napi_struct *napi, int budget)
{
	struct skua_eth *eth = container_of(napi, struct skua_eth, napi);
	struct skua_dev *dev = &eth->nic->dev;
	unsigned int sent_budget = eth->tx.sq.blocks;
	struct skua_cqe *cqe;
	int received = 0;
	bool filled;

	/* Netpoll wants frames sent, not received; the CQ does not tell before it is polled. */
	if (!budget)
		return 0;

	while (received < budget && sent_budget && (cqe = skua_cq_peek(&eth->cq))) {
		if (cqe->opcode & SKUA_CQE_OPCODE_RECV)
			received++;
		else
			sent_budget--;
		skua_eth_complete(eth, cqe, budget);
		eth->cq.ci++;
	}
	skua_cq_publish(&eth->cq);
	filled = skua_rx_fill(eth);
	if (received == budget || !sent_budget || !filled)
		return budget;

	if (napi_complete_done(napi, received) &&
	    skua_cq_arm(dev, &eth->cq, eth->cq_watch.cqn, SKUA_CQ_ARM_NEXT))
		napi_schedule(napi);
	return received;
}

/* Up and down */

static int skua_eth_up(struct skua_eth *eth)
{
	int err;

	err = skua_tx_alloc(eth);
	if (err)
		goto err_tx;
	err = skua_rx_alloc(eth);
	if (err)
		goto err_rx;
	err = skua_eth_create_cq(eth);
	if (err)
		goto err_rx;
	err = skua_eth_create_qp(eth);
	if (err)
		goto err_cq;
	if (!skua_rx_fill(eth)) {
		err = -ENOMEM;
		goto err_qp;
	}
	err = skua_eth_start_qp(eth);
	if (err)
		goto err_qp;
	err = skua_port_set_mtu(eth->nic, eth->netdev->mtu);
	if (err)
		goto err_qp;
	err = skua_port_set_mac(eth->nic, eth->netdev->dev_addr);
	if (err)
		goto err_qp;
	err = skua_port_set_rx_qp(eth->nic, eth->qp_watch.qpn);
	if (err)
		goto err_qp;
	err = skua_port_update_flags(eth->nic, SKUA_PORT_F_ENABLE, SKUA_PORT_F_ENABLE);
	if (err)
		goto err_rx_qp;
	return 0;

err_rx_qp:
	skua_port_set_rx_qp(eth->nic, 0);
err_qp:
	skua_eth_destroy_qp(eth);
err_cq:
	skua_eth_destroy_cq(eth);
err_rx:
	skua_rx_free(eth);
err_tx:
	skua_tx_free(eth);
	return err;
}

static void skua_eth_down(struct skua_eth *eth)
{
	skua_port_update_flags(eth->nic, SKUA_PORT_F_ENABLE, 0);
	skua_port_set_rx_qp(eth->nic, 0);
	skua_eth_destroy_qp(eth);
	skua_eth_destroy_cq(eth);
	skua_rx_free(eth);
	skua_tx_free(eth);
}

static int skua_open(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);
	int err;

	err = skua_eth_up(eth);
	if (err)
		return err;
	napi_enable(&eth->napi);
	/* Arms the CQ when it has found nothing. */
	local_bh_disable();
	napi_schedule(&eth->napi);
	local_bh_enable();
	eth->up = true;
	netif_start_queue(netdev);
	skua_netdev_link_changed(eth->nic);
	return 0;
}

static int skua_stop(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);

	/* It may be down already, if a change of MTU failed halfway. */
	if (!eth->up)
		return 0;
	eth->up = false;
	netif_tx_disable(netdev);
	netif_carrier_off(netdev);
	napi_disable(&eth->napi);
	skua_eth_down(eth);
	return 0;
}

/* A queue that failed is built anew: WQEs in it are lost, as on any wire. */
static void skua_eth_restart_work(struct work_struct *work)
{
	struct skua_eth *eth = container_of(work, struct skua_eth, restart);
	struct net_device *netdev = eth->netdev;

	rtnl_lock();
	if (netif_running(netdev) && skua_dev_alive(&eth->nic->dev)) {
		dev_close(netdev);
		if (dev_open(netdev, NULL))
			netdev_err(netdev, "cannot be brought up again\n");
	}
	rtnl_unlock();
}

void skua_netdev_link_changed(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);
	struct skua_port_attr attr;

	if (!eth || !netif_running(eth->netdev))
		return;
	/* The state of now, not that of the event: events may be merged or late. */
	if (skua_cmd_query_port(&nic->dev, &attr))
		return;
	if (attr.link_up)
		netif_carrier_on(eth->netdev);
	else
		netif_carrier_off(eth->netdev);
}

void skua_netdev_dead(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	if (eth)
		netif_carrier_off(eth->netdev);
}

void skua_netdev_detach(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	rtnl_lock();
	/* From here on the stack asks for nothing but to close it. */
	netif_device_detach(eth->netdev);
	skua_stop(eth->netdev);
	rtnl_unlock();
	cancel_work_sync(&eth->rx_mode);
	skua_cmd_destroy_pd(&nic->dev, eth->pdn);
}

int skua_netdev_attach(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);
	int err;

	err = skua_cmd_create_pd(&nic->dev, &eth->pdn);
	if (err)
		return err;
	rtnl_lock();
	if (netif_running(eth->netdev))
		err = skua_open(eth->netdev);
	if (!err)
		netif_device_attach(eth->netdev);
	rtnl_unlock();
	if (err)
		skua_cmd_destroy_pd(&nic->dev, eth->pdn);
	else
		queue_work(nic->wq, &eth->rx_mode);
	return err;
}

/* Settings */

static int skua_change_mtu(struct net_device *netdev, int mtu)
{
	bool running = netif_running(netdev);
	int err = 0;

	/* Receives are as long as the MTU asks for. */
	if (running)
		skua_stop(netdev);
	WRITE_ONCE(netdev->mtu, mtu);
	if (running)
		err = skua_open(netdev);
	return err;
}

static int skua_set_mac_address(struct net_device *netdev, void *addr)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct sockaddr *sa = addr;
	int err;

	err = eth_prepare_mac_addr_change(netdev, addr);
	if (err)
		return err;
	err = skua_port_set_mac(eth->nic, sa->sa_data);
	if (err)
		return err;
	eth_commit_mac_addr_change(netdev, addr);
	return 0;
}

static void skua_rx_mode_work(struct work_struct *work)
{
	struct skua_eth *eth = container_of(work, struct skua_eth, rx_mode);
	unsigned int wanted = READ_ONCE(eth->netdev->flags);
	u32 flags = 0;

	if (wanted & IFF_PROMISC)
		flags |= SKUA_PORT_F_PROMISC;
	/* The device has no multicast filter: joined groups are received one way or another. */
	if (wanted & IFF_ALLMULTI || !netdev_mc_empty(eth->netdev))
		flags |= SKUA_PORT_F_ALLMULTI;
	skua_port_update_flags(eth->nic, SKUA_PORT_F_PROMISC | SKUA_PORT_F_ALLMULTI, flags);
}

static void skua_set_rx_mode(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);

	/* Called under a spinlock. */
	queue_work(eth->nic->wq, &eth->rx_mode);
}

static void skua_tx_timeout(struct net_device *netdev, unsigned int txqueue)
{
	struct skua_eth *eth = netdev_priv(netdev);

	netdev_warn(netdev, "a frame was not sent in time\n");
	skua_health_check(eth->nic);
	schedule_work(&eth->restart);
}

static const struct net_device_ops skua_netdev_ops = {
	.ndo_open = skua_open,
	.ndo_stop = skua_stop,
	.ndo_start_xmit = skua_tx_xmit,
	.ndo_set_rx_mode = skua_set_rx_mode,
	.ndo_set_mac_address = skua_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = skua_change_mtu,
	.ndo_tx_timeout = skua_tx_timeout,
};

static int skua_netdev_setup(struct skua_eth *eth)
{
	struct net_device *netdev = eth->netdev;
	struct skua_port_attr attr;
	int err;

	err = skua_cmd_query_port(&eth->nic->dev, &attr);
	if (err)
		return err;

	netdev->netdev_ops = &skua_netdev_ops;
	netdev->ethtool_ops = &skua_ethtool_ops;
	netdev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	netdev->hw_features = NETIF_F_SG | NETIF_F_RXCSUM;
	netdev->features = netdev->hw_features | NETIF_F_HIGHDMA;
	netdev->vlan_features = NETIF_F_SG | NETIF_F_HIGHDMA;
	netdev->watchdog_timeo = 10 * HZ;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = le32_to_cpu(attr.max_mtu);
	if (is_valid_ether_addr(attr.perm_mac))
		eth_hw_addr_set(netdev, attr.perm_mac);
	else
		eth_hw_addr_random(netdev);
	netif_carrier_off(netdev);
	return 0;
}

int skua_netdev_create(struct skua_nic *nic)
{
	struct net_device *netdev;
	struct skua_eth *eth;
	int err;

	netdev = alloc_etherdev(sizeof(*eth));
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, skua_nic_device(nic));
	eth = netdev_priv(netdev);
	eth->nic = nic;
	eth->netdev = netdev;
	INIT_WORK(&eth->rx_mode, skua_rx_mode_work);
	INIT_WORK(&eth->restart, skua_eth_restart_work);
	netif_napi_add(netdev, &eth->napi, skua_eth_poll);

	err = skua_netdev_setup(eth);
	if (err)
		goto err_free;
	err = skua_cmd_create_pd(&nic->dev, &eth->pdn);
	if (err)
		goto err_free;
	nic->dev.netdev = netdev;
	err = register_netdev(netdev);
	if (err)
		goto err_pd;
	return 0;

err_pd:
	nic->dev.netdev = NULL;
	skua_cmd_destroy_pd(&nic->dev, eth->pdn);
err_free:
	free_netdev(netdev);
	dev_err(skua_nic_device(nic), "cannot make the network interface, error %d\n", err);
	return err;
}

void skua_netdev_destroy(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	unregister_netdev(eth->netdev);
	cancel_work_sync(&eth->restart);
	cancel_work_sync(&eth->rx_mode);
	/* Port events and the death of the device look at the netdev in works. */
	nic->dev.netdev = NULL;
	flush_work(&nic->async_eq.work);
	flush_work(&nic->health.dead);
	skua_cmd_destroy_pd(&nic->dev, eth->pdn);
	free_netdev(eth->netdev);
}
