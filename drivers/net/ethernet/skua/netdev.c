// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The netdev: up and down, and its settings.
 *
 * Going up: channels are made (channel.c), then the port is told where frames go, then it is
 * enabled. Going down is the reverse. A setting that needs other channels leaves the port enabled:
 * it is told of the new ones by one command, and until it has taken them the old ones stay.
 */
#include <linux/cpumask.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "cmd.h"
#include "eth.h"
#include "netdev.h"

static struct skua_eth *skua_eth(struct skua_nic *nic)
{
	struct net_device *netdev = READ_ONCE(nic->dev.netdev);

	return netdev ? netdev_priv(netdev) : NULL;
}

/* Channels in use */

/* Have frames spread over @channels, as soon as the port takes these for its receivers. */
static int skua_eth_spread(struct skua_eth *eth, const struct skua_channels *channels,
			   const struct skua_eth_rss *rss)
{
	struct skua_cmd_set_rss set = { .log_size = SKUA_RSS_MAX_LOG };
	unsigned int i;

	if (!skua_has(&eth->nic->dev, SKUA_F_ETH_RSS))
		return 0;
	memcpy(set.key, rss->key, sizeof(set.key));
	for (i = 0; i < SKUA_RSS_TABLE_LEN; i++)
		set.qpn[i] = cpu_to_le32(channels->channel[rss->table[i]].qp_watch.number);
	return skua_cmd_set_rss(eth->nic, &set);
}

int skua_eth_set_rss(struct skua_eth *eth, const struct skua_eth_rss *rss)
{
	int err = eth->channels ? skua_eth_spread(eth, eth->channels, rss) : 0;

	if (!err)
		eth->rss = *rss;
	return err;
}

/* Its entries in turn for each channel. */
static void skua_eth_spread_evenly(struct skua_eth_rss *rss, u32 channels)
{
	unsigned int i;

	for (i = 0; i < SKUA_RSS_TABLE_LEN; i++)
		rss->table[i] = ethtool_rxfh_indir_default(i, channels);
}

/* The table for another number of channels; the user's own stays if it can. */
static void skua_eth_adapt_table(struct skua_eth *eth, struct skua_eth_rss *rss, u32 channels)
{
	bool keep = netif_is_rxfh_configured(eth->netdev) || channels == eth->config.channels;
	unsigned int i;

	for (i = 0; i < SKUA_RSS_TABLE_LEN; i++)
		keep = keep && rss->table[i] < channels;
	if (!keep)
		skua_eth_spread_evenly(rss, channels);
}

/* Each channel sends what comes from the CPU that its interrupts go to. */
static void skua_eth_set_xps(struct skua_eth *eth)
{
	int node = dev_to_node(skua_nic_device(eth->nic));
	u32 i;

	for (i = 0; i < eth->config.channels; i++)
		netif_set_xps_queue(eth->netdev, cpumask_of(cpumask_local_spread(i, node)), i);
}

/*
 * Have the device give frames to @channels. Where it refuses the second command, the spreading may
 * still name them; destroying them undoes that (ETH-16).
 */
static int skua_eth_direct(struct skua_eth *eth, const struct skua_channels *channels, u32 mtu,
			   const struct skua_eth_rss *rss)
{
	int err;

	err = skua_eth_spread(eth, channels, rss);
	if (err)
		return err;
	return skua_port_set_receiver(eth->nic, mtu, eth->netdev->dev_addr,
				      channels->channel[0].qp_watch.number);
}

/* Let the channels that are in use work. Queues without a channel are never used. */
static void skua_eth_run(struct skua_eth *eth)
{
	struct skua_channels *channels = eth->channels;
	struct net_device *netdev = eth->netdev;
	u32 i;

	skua_channels_enable(channels);
	for (i = 0; i < netdev->num_tx_queues; i++)
		if (i >= channels->num || skua_tx_has_room(&channels->channel[i]))
			netif_tx_wake_queue(netdev_get_tx_queue(netdev, i));
}

/*
 * No frame is on its way into a ring any more, nor will be. NAPI goes first: it would wake a queue
 * for each frame that was sent meanwhile.
 */
static void skua_eth_quiesce(struct skua_eth *eth)
{
	struct net_device *netdev = eth->netdev;
	unsigned int i;

	/* There are none if the device could not be attached after a reset. */
	if (eth->channels)
		skua_channels_disable(eth->channels);
	netif_tx_disable(netdev);
	/* Else the watchdog might think that a queue which is stopped has been so for long. */
	for (i = 0; i < netdev->real_num_tx_queues; i++)
		txq_trans_cond_update(netdev_get_tx_queue(netdev, i));
}

/* The channels in use are quiet, and frames in them are lost. */
static void skua_eth_drop(struct skua_eth *eth)
{
	skua_channels_destroy(eth->channels);
	eth->channels = NULL;
}

static int skua_eth_set_num_queues(struct skua_eth *eth, u32 channels)
{
	return netif_set_real_num_queues(eth->netdev, channels, channels);
}

/* The channels are new, and so are the rings that the stack's queues stand for. */
static void skua_eth_use(struct skua_eth *eth, struct skua_channels *channels)
{
	u32 i;

	skua_eth_set_xps(eth);
	for (i = 0; i < channels->num; i++)
		netdev_tx_reset_queue(netdev_get_tx_queue(eth->netdev, i));
	eth->channels = channels;
}

/*
 * Put a new set in the place of the one in use, which is quiet. The stack's queues become more
 * before, and fewer after: only the former can fail.
 */
static int skua_eth_replace(struct skua_eth *eth, struct skua_channels *channels,
			    const struct skua_eth_config *config, const struct skua_eth_rss *rss)
{
	u32 num = eth->config.channels;
	int err = 0;

	if (config->channels > num)
		err = skua_eth_set_num_queues(eth, config->channels);
	if (err)
		return err;
	err = skua_eth_direct(eth, channels, config->mtu, rss);
	if (err) {
		skua_eth_spread(eth, eth->channels, &eth->rss);
		if (config->channels > num)
			skua_eth_set_num_queues(eth, num);
		return err;
	}
	eth->config = *config;
	eth->rss = *rss;
	skua_eth_use(eth, channels);
	if (config->channels < num)
		skua_eth_set_num_queues(eth, config->channels);
	return 0;
}

int skua_eth_reconfigure(struct skua_eth *eth, const struct skua_eth_config *config)
{
	struct skua_channels *channels, *unused;
	struct skua_eth_rss rss = eth->rss;
	int err;

	ASSERT_RTNL();
	skua_eth_adapt_table(eth, &rss, config->channels);
	/* Channels that cannot be made would keep a dead device from being brought up again. */
	if (!eth->channels && netif_running(eth->netdev) && netif_device_present(eth->netdev))
		return -EIO;
	if (!eth->channels) {
		err = skua_eth_set_num_queues(eth, config->channels);
		if (err)
			return err;
		eth->config = *config;
		eth->rss = rss;
		return 0;
	}

	unused = eth->channels;
	channels = skua_channels_create(eth, config);
	if (IS_ERR(channels))
		return PTR_ERR(channels);
	skua_eth_quiesce(eth);
	err = skua_eth_replace(eth, channels, config, &rss);
	if (err)
		unused = channels;
	skua_eth_run(eth);
	skua_channels_destroy(unused);
	return err;
}

/*
 * A queue that failed is made anew: WQEs in it are lost, as on any wire. Until that succeeds
 * nothing else would ask for it: the device tells once of a failure, and a failed SQ completes all
 * frames. Of a dead device, queues go until it is brought up again.
 */
static void skua_eth_restart_work(struct work_struct *work)
{
	struct skua_eth *eth = container_of(work, struct skua_eth, restart.work);

	rtnl_lock();
	if (eth->channels && !skua_dev_alive(&eth->nic->dev)) {
		skua_eth_quiesce(eth);
		skua_eth_drop(eth);
	} else if (eth->channels && skua_eth_reconfigure(eth, &eth->config)) {
		netdev_err(eth->netdev, "cannot be brought up again, will be tried in a second\n");
		schedule_delayed_work(&eth->restart, HZ);
	}
	rtnl_unlock();
}

static int skua_open(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_channels *channels;
	int err;

	channels = skua_channels_create(eth, &eth->config);
	if (IS_ERR(channels))
		return PTR_ERR(channels);
	err = skua_eth_direct(eth, channels, eth->config.mtu, &eth->rss);
	if (err)
		goto err_channels;
	err = skua_port_update_flags(eth->nic, SKUA_PORT_F_ENABLE, SKUA_PORT_F_ENABLE);
	if (err)
		goto err_channels;
	skua_eth_use(eth, channels);
	skua_eth_run(eth);
	return 0;

err_channels:
	skua_channels_destroy(channels);
	return err;
}

static int skua_stop(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);

	skua_eth_quiesce(eth);
	skua_port_update_flags(eth->nic, SKUA_PORT_F_ENABLE, 0);
	skua_eth_drop(eth);
	return 0;
}

static void skua_eth_update_link(struct skua_eth *eth)
{
	struct skua_nic *nic = eth->nic;
	struct skua_port_attr attr;
	int err;

	/* The state of now, not that of the event: events may be merged or late. */
	mutex_lock(&nic->port.lock);
	err = skua_cmd_query_port(&nic->dev, &attr);
	if (!err && attr.link_up && netif_device_present(eth->netdev))
		netif_carrier_on(eth->netdev);
	else if (!err)
		netif_carrier_off(eth->netdev);
	mutex_unlock(&nic->port.lock);
	if (!err || !skua_dev_alive(&nic->dev))
		return;
	/* Else the carrier would stay as it is until the link changes. */
	netdev_err(eth->netdev, "cannot ask for the state of the link, will be tried in a second\n");
	queue_delayed_work(skua_wq, &eth->link, HZ);
}

static void skua_link_work(struct work_struct *work)
{
	skua_eth_update_link(container_of(work, struct skua_eth, link.work));
}

void skua_netdev_link_changed(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	if (eth)
		skua_eth_update_link(eth);
}

void skua_netdev_dead(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	if (!eth)
		return;
	/* Whoever was told before that the link is up has said so now. */
	mutex_lock(&nic->port.lock);
	netif_carrier_off(eth->netdev);
	mutex_unlock(&nic->port.lock);
	/* Their senders wait for frames that are in its rings. */
	schedule_delayed_work(&eth->restart, 0);
}

void skua_netdev_link_stop(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	if (eth)
		cancel_delayed_work_sync(&eth->link);
}

/* Without spreading, one channel would get all frames. */
static u32 skua_netdev_max_channels(struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_ETH_RSS) ?
		min_t(u32, dev->num_comp_vectors, SKUA_RSS_TABLE_LEN) : 1;
}

void skua_netdev_detach(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	rtnl_lock();
	/* From here on the stack asks for nothing but to close it. */
	netif_device_detach(eth->netdev);
	skua_stop(eth->netdev);
	rtnl_unlock();
	/* There may be no device again. */
	skua_netdev_dead(nic);
	/* Later it would make the queues anew that the device has when it is attached. */
	cancel_delayed_work_sync(&eth->restart);
	cancel_delayed_work_sync(&eth->rx_mode);
	cancel_delayed_work_sync(&eth->link);
	skua_cmd_destroy_pd(&nic->dev, eth->pdn);
}

/* The device may have fewer vectors now. */
static int skua_eth_adapt(struct skua_eth *eth)
{
	struct skua_eth_config config = eth->config;

	eth->max_channels = min(eth->netdev->num_tx_queues,
				skua_netdev_max_channels(&eth->nic->dev));
	if (config.channels <= eth->max_channels)
		return 0;
	config.channels = eth->max_channels;
	return skua_eth_reconfigure(eth, &config);
}

int skua_netdev_attach(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);
	int err;

	err = skua_cmd_create_pd(&nic->dev, &eth->pdn);
	if (err)
		return err;
	rtnl_lock();
	err = skua_eth_adapt(eth);
	if (!err && netif_running(eth->netdev))
		err = skua_open(eth->netdev);
	if (!err)
		netif_device_attach(eth->netdev);
	rtnl_unlock();
	if (err) {
		skua_cmd_destroy_pd(&nic->dev, eth->pdn);
		return err;
	}
	queue_delayed_work(skua_wq, &eth->rx_mode, 0);
	skua_netdev_link_changed(nic);
	return 0;
}

/* Settings */

static int skua_change_mtu(struct net_device *netdev, int mtu)
{
	struct skua_eth *eth = netdev_priv(netdev);
	struct skua_eth_config config = eth->config;
	int err;

	config.mtu = mtu;
	err = skua_eth_reconfigure(eth, &config);
	if (!err)
		WRITE_ONCE(netdev->mtu, mtu);
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
	struct skua_eth *eth = container_of(work, struct skua_eth, rx_mode.work);
	unsigned int wanted = READ_ONCE(eth->netdev->flags);
	u32 flags = 0;

	if (wanted & IFF_PROMISC)
		flags |= SKUA_PORT_F_PROMISC;
	/* The device has no multicast filter: joined groups are received one way or another. */
	if (wanted & IFF_ALLMULTI || !netdev_mc_empty(eth->netdev))
		flags |= SKUA_PORT_F_ALLMULTI;
	if (!skua_port_update_flags(eth->nic, SKUA_PORT_F_PROMISC | SKUA_PORT_F_ALLMULTI, flags) ||
	    !skua_dev_alive(&eth->nic->dev))
		return;
	/* Else frames that are wanted would not come until something else is wanted, too. */
	netdev_err(eth->netdev, "the filter of frames was not set, will be tried in a second\n");
	queue_delayed_work(skua_wq, &eth->rx_mode, HZ);
}

static void skua_set_rx_mode(struct net_device *netdev)
{
	struct skua_eth *eth = netdev_priv(netdev);

	/* Called under a spinlock. */
	queue_delayed_work(skua_wq, &eth->rx_mode, 0);
}

static void skua_tx_timeout(struct net_device *netdev, unsigned int txqueue)
{
	struct skua_eth *eth = netdev_priv(netdev);

	netdev_warn(netdev, "a frame of queue %u was not sent in time\n", txqueue);
	skua_health_check(eth->nic);
	schedule_delayed_work(&eth->restart, 0);
}

static void skua_get_stats64(struct net_device *netdev, struct rtnl_link_stats64 *stats)
{
	struct skua_eth *eth = netdev_priv(netdev);
	u64 frames, bytes;
	u32 i;

	for (i = 0; i < netdev->num_tx_queues; i++) {
		skua_eth_counted(&eth->counts[i].tx, &frames, &bytes);
		stats->tx_packets += frames;
		stats->tx_bytes += bytes;
		skua_eth_counted(&eth->counts[i].rx, &frames, &bytes);
		stats->rx_packets += frames;
		stats->rx_bytes += bytes;
	}
}

static const struct net_device_ops skua_netdev_ops = {
	.ndo_open = skua_open,
	.ndo_stop = skua_stop,
	.ndo_start_xmit = skua_tx_xmit,
	.ndo_features_check = skua_tx_features,
	.ndo_set_rx_mode = skua_set_rx_mode,
	.ndo_set_mac_address = skua_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = skua_change_mtu,
	.ndo_tx_timeout = skua_tx_timeout,
	.ndo_get_stats64 = skua_get_stats64,
};

/* Frames of TCP, also with ECN: CWR is in the first one only. Identifications grow by 1. */
#define SKUA_NETDEV_TSO	(NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN)

static netdev_features_t skua_netdev_features(struct skua_dev *dev)
{
	netdev_features_t features = NETIF_F_SG;

	if (skua_has(dev, SKUA_F_ETH_CSUM))
		features |= NETIF_F_HW_CSUM | NETIF_F_RXCSUM;
	if (skua_has(dev, SKUA_F_TSO) && skua_has(dev, SKUA_F_ETH_CSUM))
		features |= SKUA_NETDEV_TSO;
	if (skua_has(dev, SKUA_F_ETH_RSS))
		features |= NETIF_F_RXHASH;
	return features;
}

static int skua_netdev_setup(struct skua_eth *eth)
{
	struct skua_limits *limits = &eth->nic->dev.limits;
	struct net_device *netdev = eth->netdev;
	struct skua_port_attr attr;
	unsigned int i;
	int err;

	err = skua_cmd_query_port(&eth->nic->dev, &attr);
	if (err)
		return err;

	netdev->netdev_ops = &skua_netdev_ops;
	netdev->ethtool_ops = &skua_ethtool_ops;
	netdev->hw_features = skua_netdev_features(&eth->nic->dev);
	netdev->features = netdev->hw_features | NETIF_F_HIGHDMA;
	netdev->vlan_features = netdev->hw_features & (NETIF_F_SG | NETIF_F_HW_CSUM);
	netdev->vlan_features |= NETIF_F_HIGHDMA;
	netdev->hw_enc_features = netdev->vlan_features;
	netdev->vlan_features |= netdev->hw_features & SKUA_NETDEV_TSO;
	netdev->watchdog_timeo = 10 * HZ;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = le32_to_cpu(attr.max_mtu);
	if (is_valid_ether_addr(attr.perm_mac))
		eth_hw_addr_set(netdev, attr.perm_mac);
	else
		eth_hw_addr_random(netdev);
	netif_carrier_off(netdev);

	eth->config.mtu = netdev->mtu;
	eth->config.channels = min_t(u32, eth->max_channels, netif_get_num_default_rss_queues());
	eth->config.tx_blocks = min_t(u32, SKUA_TX_BLOCKS,
				      rounddown_pow_of_two(limits->max_sq_blocks));
	eth->config.rx_entries = min_t(u32, SKUA_RX_ENTRIES,
				       rounddown_pow_of_two(limits->max_rq_entries));
	netdev_rss_key_fill(eth->rss.key, sizeof(eth->rss.key));
	skua_eth_spread_evenly(&eth->rss, eth->config.channels);
	/* Those that are not in use stay stopped. */
	for (i = 0; i < netdev->num_tx_queues; i++)
		netif_tx_stop_queue(netdev_get_tx_queue(netdev, i));
	return skua_eth_set_num_queues(eth, eth->config.channels);
}

/* Port events and the death of the device look at the netdev in works, and so does its own. */
static void skua_netdev_forget(struct skua_nic *nic, struct skua_eth *eth)
{
	WRITE_ONCE(nic->dev.netdev, NULL);
	flush_work(&nic->async_eq.work);
	flush_work(&nic->health.dead);
	cancel_delayed_work_sync(&eth->link);
}

int skua_netdev_create(struct skua_nic *nic)
{
	u32 max_channels = skua_netdev_max_channels(&nic->dev);
	struct net_device *netdev;
	struct skua_eth *eth;
	u32 i;
	int err;

	netdev = alloc_etherdev_mq(sizeof(*eth), max_channels);
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, skua_nic_device(nic));
	eth = netdev_priv(netdev);
	eth->nic = nic;
	eth->netdev = netdev;
	eth->max_channels = max_channels;
	INIT_DELAYED_WORK(&eth->link, skua_link_work);
	INIT_DELAYED_WORK(&eth->rx_mode, skua_rx_mode_work);
	INIT_DELAYED_WORK(&eth->restart, skua_eth_restart_work);
	eth->counts = kcalloc(max_channels, sizeof(*eth->counts), GFP_KERNEL);
	if (!eth->counts) {
		err = -ENOMEM;
		goto err_free;
	}
	for (i = 0; i < max_channels; i++) {
		u64_stats_init(&eth->counts[i].tx.sync);
		u64_stats_init(&eth->counts[i].rx.sync);
	}

	err = skua_netdev_setup(eth);
	if (err)
		goto err_free;
	err = skua_cmd_create_pd(&nic->dev, &eth->pdn);
	if (err)
		goto err_free;
	WRITE_ONCE(nic->dev.netdev, netdev);
	err = register_netdev(netdev);
	if (err)
		goto err_pd;
	skua_netdev_link_changed(nic);
	return 0;

err_pd:
	skua_netdev_forget(nic, eth);
	cancel_delayed_work_sync(&eth->restart);
	skua_cmd_destroy_pd(&nic->dev, eth->pdn);
err_free:
	kfree(eth->counts);
	free_netdev(netdev);
	dev_err(skua_nic_device(nic), "cannot make the network interface, error %d\n", err);
	return err;
}

void skua_netdev_destroy(struct skua_nic *nic)
{
	struct skua_eth *eth = skua_eth(nic);

	/* Once it is unregistered, nobody would wait for what a change of its carrier starts. */
	skua_netdev_forget(nic, eth);
	unregister_netdev(eth->netdev);
	cancel_delayed_work_sync(&eth->restart);
	cancel_delayed_work_sync(&eth->rx_mode);
	skua_cmd_destroy_pd(&nic->dev, eth->pdn);
	kfree(eth->counts);
	free_netdev(eth->netdev);
}
