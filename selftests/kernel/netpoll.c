// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The network interface while nobody else polls it. As netpoll uses it, for messages of a kernel
 * that takes no interrupts any more: frames are sent, and NAPI is polled with a budget of 0, which
 * gives back those that were sent. And a queue whose ring stays full.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>

#include "skua_selftest.h"

#define ST_FRAMES	6000	/* more than the largest ring by default */
#define ST_FRAME_TRIES	10000
#define ST_WAKES	100

/* To nobody. */
static int st_send_frame(struct net_device *netdev)
{
	struct sk_buff *skb = alloc_skb(LL_MAX_HEADER + ETH_ZLEN, GFP_KERNEL);
	static const u8 dest[ETH_ALEN] = { 0x02, 0, 0, 0, 0, 0x01 };

	if (!skb)
		return -ENOMEM;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_reset_mac_header(skb);
	skb_put_zero(skb, ETH_ZLEN);
	ether_addr_copy(skb->data, dest);
	ether_addr_copy(skb->data + ETH_ALEN, netdev->dev_addr);
	skb->protocol = htons(ETH_P_802_EX1);
	skb->dev = netdev;
	return dev_direct_xmit(skb, 0);
}

static bool st_poll_all(struct net_device *netdev)
{
	struct napi_struct *napi;
	bool right = true;

	local_bh_disable();
	list_for_each_entry(napi, &netdev->napi_list, dev_list) {
		set_bit(NAPI_STATE_NPSVC, &napi->state);
		if (napi->poll(napi, 0))
			right = false;
		clear_bit(NAPI_STATE_NPSVC, &napi->state);
	}
	local_bh_enable();
	return right;
}

/* No NAPI is scheduled by anybody else until it is given back. */
static bool st_take_napi(struct napi_struct *napi)
{
	unsigned int tries;

	for (tries = 0; tries < 50; tries++) {
		if (napi_schedule_prep(napi))
			return true;
		msleep(20);
	}
	return false;
}

static void st_give_napi(struct napi_struct *napi)
{
	local_bh_disable();
	__napi_schedule(napi);
	local_bh_enable();
}

static const char *st_send_frames(struct net_device *netdev)
{
	unsigned int sent = 0, tries = 0;

	while (sent < ST_FRAMES) {
		if (st_send_frame(netdev) == NETDEV_TX_OK) {
			sent++;
			tries = 0;
			continue;
		}
		if (!st_poll_all(netdev))
			return "polling without a budget returned work";
		if (tries++ == ST_FRAME_TRIES)
			return "the send queue stays full";
		usleep_range(50, 100);
	}
	return NULL;
}

/* NAPI may wake a queue by what it saw of the ring a while ago. */
static const char *st_wake_full_ring(struct net_device *netdev)
{
	unsigned int sent = 0, wakes;

	while (st_send_frame(netdev) == NETDEV_TX_OK)
		if (++sent == ST_FRAMES)
			return "the send queue never becomes full";
	for (wakes = 0; wakes < ST_WAKES; wakes++) {
		netif_tx_wake_queue(netdev_get_tx_queue(netdev, 0));
		if (st_send_frame(netdev) == NETDEV_TX_OK)
			return "a ring that is full takes a frame";
	}
	return NULL;
}

static const char *st_without_napi(struct net_device *netdev,
				   const char *(*run)(struct net_device *netdev))
{
	struct napi_struct *napi, *last = NULL;
	const char *wrong = NULL;

	list_for_each_entry(napi, &netdev->napi_list, dev_list) {
		if (!st_take_napi(napi)) {
			wrong = "NAPI is busy";
			break;
		}
		last = napi;
	}
	wrong = wrong ?: run(netdev);
	list_for_each_entry(napi, &netdev->napi_list, dev_list) {
		if (!last)
			break;
		st_give_napi(napi);
		if (napi == last)
			break;
	}
	return wrong;
}

static const char *st_run_netdev(struct st_side *side,
				 const char *(*run)(struct net_device *netdev))
{
	struct net_device *netdev = ib_device_get_netdev(side[0].dev, 1);
	const char *wrong;

	if (!netdev)
		return "no network interface";
	rtnl_lock();
	wrong = st_without_napi(netdev, run);
	rtnl_unlock();
	dev_put(netdev);
	return wrong;
}

const char *st_netpoll(struct st_side *side)
{
	return st_run_netdev(side, st_send_frames);
}

const char *st_false_wake(struct st_side *side)
{
	return st_run_netdev(side, st_wake_full_ring);
}
