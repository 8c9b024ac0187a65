// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Channels of the netdev: making them, polling them, taking them away. Frames are sent in tx.c and
 * received in rx.c.
 *
 * Making: rings, CQ, QP, receives posted, RESET to RTS. Taking away is the reverse; destroying the
 * QP is the fence after which buffers are freed.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/slab.h>

#include <linux/skua/command.h>

#include "eth.h"

/* CQ */

static void skua_channel_comp(struct skua_cq_watch *watch)
{
	struct skua_channel *ch = container_of(watch, struct skua_channel, cq_watch);

	napi_schedule(&ch->napi);
}

static void skua_channel_cq_error(struct skua_cq_watch *watch)
{
	struct skua_channel *ch = container_of(watch, struct skua_channel, cq_watch);

	schedule_delayed_work(&ch->eth->restart, 0);
}

static int skua_channel_create_cq(struct skua_channel *ch)
{
	struct skua_dev *dev = &ch->eth->nic->dev;
	struct skua_pagelist ring;
	struct skua_cq_params params = {
		.vector = ch->index,
		.ring = &ring,
	};
	u32 size;
	int err;

	/* A CQE for each WQE and each receive that can be outstanding: it cannot overflow. */
	size = roundup_pow_of_two(ch->tx.sq.blocks + ch->rx.rq.size);
	if (size > dev->limits.max_cqe)
		return -EINVAL;
	err = skua_mem_alloc(dev, &ch->cq_mem, size * sizeof(struct skua_cqe));
	if (err)
		return err;
	ch->cq.buf = ch->cq_mem.va;
	ch->cq.size = size;
	ch->cq.dbr = skua_dbr_alloc(dev, &ch->cq_dbr);
	if (!ch->cq.dbr) {
		err = -ENOMEM;
		goto err_mem;
	}

	skua_mem_describe(&ch->cq_mem, &ring);
	params.log_size = ilog2(size);
	params.dbr = ch->cq_dbr;
	err = skua_cmd_create_cq(dev, &params, &ch->cq_watch.cqn);
	if (err)
		goto err_dbr;

	ch->cq_watch.comp = skua_channel_comp;
	ch->cq_watch.error = skua_channel_cq_error;
	err = skua_cq_watch(dev, &ch->cq_watch);
	if (err)
		goto err_destroy;
	return 0;

err_destroy:
	skua_cmd_destroy_cq(dev, ch->cq_watch.cqn);
err_dbr:
	skua_dbr_free(dev, ch->cq.dbr, ch->cq_dbr);
err_mem:
	skua_mem_free(dev, &ch->cq_mem);
	return err;
}

static void skua_channel_destroy_cq(struct skua_channel *ch)
{
	struct skua_dev *dev = &ch->eth->nic->dev;

	skua_cmd_destroy_cq(dev, ch->cq_watch.cqn);
	skua_cq_unwatch(dev, &ch->cq_watch);
	skua_dbr_free(dev, ch->cq.dbr, ch->cq_dbr);
	skua_mem_free(dev, &ch->cq_mem);
}

/* QP */

static void skua_channel_qp_event(struct skua_obj_watch *watch, u8 type)
{
	struct skua_channel *ch = container_of(watch, struct skua_channel, qp_watch);

	schedule_delayed_work(&ch->eth->restart, 0);
}

static int skua_channel_create_qp(struct skua_channel *ch)
{
	struct skua_dev *dev = &ch->eth->nic->dev;
	struct skua_pagelist sq, rq;
	struct skua_qp_params params = {
		.type = SKUA_QPT_ETH,
		.privileged = true,
		.pdn = ch->eth->pdn,
		.send_cqn = ch->cq_watch.cqn,
		.recv_cqn = ch->cq_watch.cqn,
		.sq = &sq,
		.sq_dbr = ch->tx.dbr,
		.log_sq_blocks = ilog2(ch->tx.sq.blocks),
		.log_rq_size = ilog2(ch->rx.rq.size),
		.log_rq_stride = ch->rx.rq.log_stride,
		.rq = &rq,
		.rq_dbr = ch->rx.dbr,
	};
	int err;

	skua_mem_describe(&ch->tx.mem, &sq);
	skua_mem_describe(&ch->rx.mem, &rq);
	err = skua_cmd_create_qp(dev, &params, &ch->qp_watch.number);
	if (err)
		return err;
	ch->qp_watch.event = skua_channel_qp_event;
	err = skua_qp_watch(dev, &ch->qp_watch);
	if (err)
		skua_cmd_destroy_qp(dev, ch->qp_watch.number);
	return err;
}

static void skua_channel_destroy_qp(struct skua_channel *ch)
{
	struct skua_dev *dev = &ch->eth->nic->dev;

	skua_cmd_destroy_qp(dev, ch->qp_watch.number);
	skua_qp_unwatch(dev, &ch->qp_watch);
}

static int skua_channel_start_qp(struct skua_channel *ch)
{
	static const u8 states[] = { SKUA_QPS_INIT, SKUA_QPS_RTR, SKUA_QPS_RTS };
	struct skua_qp_attr attr = {};
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		attr.state = states[i];
		err = skua_cmd_modify_qp(&ch->eth->nic->dev, ch->qp_watch.number,
					 SKUA_QP_ATTR_STATE, &attr);
		if (err)
			return err;
	}
	return 0;
}

/* Polling */

/*
 * Does @cqe belong to this channel's QP, and complete what is outstanding? The blocks before @sent
 * are complete already.
 */
static bool skua_channel_expects(const struct skua_channel *ch, const struct skua_cqe *cqe,
				 u32 sent)
{
	if (le32_to_cpu(cqe->qpn) != ch->qp_watch.number)
		return false;
	return cqe->opcode & SKUA_CQE_OPCODE_RECV ? skua_rq_expects(&ch->rx.rq, cqe) :
						    skua_sq_expects(&ch->tx.sq, sent, cqe);
}

/*
 * Frames that were sent are only noted, in *@sent: their blocks are free when the CQE's place is,
 * so that there is one for whatever is sent next.
 */
static void skua_channel_complete(struct skua_channel *ch, const struct skua_cqe *cqe, u32 *sent)
{
	struct skua_eth *eth = ch->eth;

	if (unlikely(!skua_channel_expects(ch, cqe, *sent))) {
		skua_health_dead(eth->nic, "it completed work that is not outstanding");
		return;
	}
	if (unlikely(cqe->status != SKUA_CQE_SUCCESS && cqe->status != SKUA_CQE_WR_FLUSH_ERR)) {
		if (net_ratelimit())
			netdev_err(eth->netdev, "%s failed, status %u, cause %u: restarting\n",
				   cqe->opcode & SKUA_CQE_OPCODE_RECV ? "receive" : "send",
				   cqe->status, cqe->vendor_err);
		schedule_delayed_work(&eth->restart, 0);
	}
	if (cqe->opcode & SKUA_CQE_OPCODE_RECV)
		skua_rx_complete(ch, cqe);
	else
		*sent = le32_to_cpu(cqe->sq_ci);
}

static bool skua_cqe_is_send(const struct skua_cqe *cqe, void *unused)
{
	return !(cqe->opcode & SKUA_CQE_OPCODE_RECV);
}

/* Give back the frames that were sent. What was received waits for the next regular poll. */
static void skua_channel_reclaim(struct skua_channel *ch)
{
	u32 end = skua_cq_end(&ch->cq);
	u32 sent = ch->tx.sq.ci;
	u32 i;

	for (i = ch->cq.ci; i != end; i++) {
		const struct skua_cqe *cqe = &ch->cq.buf[i & (ch->cq.size - 1)];

		if (skua_cqe_is_send(cqe, NULL))
			skua_channel_complete(ch, cqe, &sent);
	}
	skua_cq_remove(&ch->cq, end, skua_cqe_is_send, NULL);
	skua_tx_complete(ch, sent, 0);
}

static int skua_channel_poll(struct napi_struct *napi, int budget)
{
	struct skua_channel *ch = container_of(napi, struct skua_channel, napi);
	struct skua_dev *dev = &ch->eth->nic->dev;
	unsigned int sent_budget = ch->tx.sq.blocks;
	u32 sent = ch->tx.sq.ci;
	struct skua_cqe *cqe;
	int received = 0;
	bool filled;

	/* Netpoll, in whatever context: it wants frames sent, and none received. */
	if (!budget) {
		skua_channel_reclaim(ch);
		return 0;
	}

	while (received < budget && sent_budget && (cqe = skua_cq_peek(&ch->cq))) {
		if (cqe->opcode & SKUA_CQE_OPCODE_RECV)
			received++;
		else
			sent_budget--;
		skua_channel_complete(ch, cqe, &sent);
		ch->cq.ci++;
	}
	skua_cq_publish(&ch->cq);
	skua_tx_complete(ch, sent, budget);
	filled = skua_rx_fill(ch);
	if (received == budget || !sent_budget || !filled)
		return budget;

	if (napi_complete_done(napi, received) &&
	    skua_cq_arm(dev, &ch->cq, ch->cq_watch.cqn, SKUA_CQ_ARM_NEXT))
		napi_schedule(napi);
	return received;
}

/* Sets */

static int skua_channel_create(struct skua_channel *ch, const struct skua_eth_config *config)
{
	struct skua_nic *nic = ch->eth->nic;
	int err;

	ch->frame_size = config->mtu + SKUA_FRAME_OVERHEAD;
	netif_napi_add(ch->eth->netdev, &ch->napi, skua_channel_poll);
	netif_napi_set_irq(&ch->napi, nic->comp_eqs[ch->index].irq);
	err = skua_tx_alloc(ch, config->tx_blocks);
	if (err)
		goto err_tx;
	err = skua_rx_alloc(ch, config->rx_entries);
	if (err)
		goto err_rx;
	err = skua_channel_create_cq(ch);
	if (err)
		goto err_rx;
	err = skua_channel_create_qp(ch);
	if (err)
		goto err_cq;
	err = skua_rx_fill(ch) ? skua_channel_start_qp(ch) : -ENOMEM;
	if (err)
		goto err_qp;
	return 0;

err_qp:
	skua_channel_destroy_qp(ch);
err_cq:
	skua_channel_destroy_cq(ch);
err_rx:
	skua_rx_free(ch);
err_tx:
	skua_tx_free(ch);
	netif_napi_del(&ch->napi);
	return err;
}

static void skua_channel_destroy(struct skua_channel *ch)
{
	skua_channel_destroy_qp(ch);
	skua_channel_destroy_cq(ch);
	skua_rx_free(ch);
	skua_tx_free(ch);
	netif_napi_del(&ch->napi);
}

struct skua_channels *skua_channels_create(struct skua_eth *eth,
					   const struct skua_eth_config *config)
{
	struct skua_channels *channels;
	u32 i;
	int err;

	channels = kvzalloc(struct_size(channels, channel, config->channels), GFP_KERNEL);
	if (!channels)
		return ERR_PTR(-ENOMEM);
	channels->num = config->channels;
	for (i = 0; i < channels->num; i++) {
		channels->channel[i].eth = eth;
		channels->channel[i].index = i;
		err = skua_channel_create(&channels->channel[i], config);
		if (err)
			goto err_channels;
	}
	return channels;

err_channels:
	while (i--)
		skua_channel_destroy(&channels->channel[i]);
	kvfree(channels);
	return ERR_PTR(err);
}

void skua_channels_destroy(struct skua_channels *channels)
{
	u32 i;

	if (!channels)
		return;
	for (i = channels->num; i--;)
		skua_channel_destroy(&channels->channel[i]);
	kvfree(channels);
}

void skua_channels_enable(struct skua_channels *channels)
{
	u32 i;

	for (i = 0; i < channels->num; i++) {
		napi_enable(&channels->channel[i].napi);
		/* Arms the CQ when it has found nothing. */
		local_bh_disable();
		napi_schedule(&channels->channel[i].napi);
		local_bh_enable();
	}
}

void skua_channels_disable(struct skua_channels *channels)
{
	u32 i;

	for (i = 0; i < channels->num; i++)
		napi_disable(&channels->channel[i].napi);
}
