// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What skuactl asks of a device, and the little that it changes; faults are in faults.c.
 */
#include <string.h>

#include "core/counter.h"
#include "core/gaps.h"
#include "core/mw.h"
#include "core/pacer.h"
#include "core/transport.h"
#include "core/xrcd.h"
#include "nic/control.h"

void skua_dev_get_info(const struct skua_dev *dev, struct skua_dev_info *info)
{
	struct port_link_stats link = { 0 };

	*info = (struct skua_dev_info){
		.name = dev->name,
		.link = dev->link_name,
		.link_up = port_is_up(dev->port),
		.status = dev->status,
		.health = dev->health,
		.gone = dev->inject.gone,
		.features = dev->accepted,
		.port_flags = dev->port_flags,
		.mtu = dev->mtu,
		.eqs = dev->eqs.count,
		.pds = dev->pds.count,
		.cqs = dev->cqs.count,
		.qps = dev->qps.count,
		.mrs = dev->mrs.count,
	};
	memcpy(info->mac, dev->mac, sizeof(info->mac));
	info->spoof = port_may_spoof(dev->port);
	info->persistent = dev->persist;
	info->outside = port_link_stats(dev->port, &link);
	info->link_peer = link.peer;
	info->link_tx_lost = link.tx_lost;
	info->link_rx_lost = link.rx_lost;
}

void skua_dev_get_stats(const struct skua_dev *dev, uint64_t *values)
{
	struct device_stats sum;

	counter_sum(dev, &sum);
#define STATS_GET(name) *values++ = sum.name;
	SKUA_STATS(STATS_GET)
#undef STATS_GET
}

/* In a table that has grown, objects have other places. */
static void begin(struct skua_walk *walk, const struct numtab *t)
{
	if (walk->slots != numtab_slots(t))
		*walk = (struct skua_walk){ .slots = numtab_slots(t), .anew = true };
}

bool skua_dev_for_each_qp(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn,
			  void *arg)
{
	const struct skua_qp *qp;
	int32_t budget = STEP_COST;

	begin(walk, &dev->qps);
	while ((qp = numtab_walk(&dev->qps, &walk->at, &budget))) {
		struct transport_progress progress = { .una_psn = qp->sq.psn };
		struct skua_qp_info info;

		if (qp->ops->progress)
			qp->ops->progress(qp, &progress);
		info = (struct skua_qp_info){
			.qpn = qp->number,
			.dest_qpn = qp->dest_qpn,
			.type = qp->type,
			.state = qp->state,
			.sq_psn = qp->sq.psn,
			.una_psn = progress.una_psn,
			.rq_psn = qp->epsn,
			.retries = progress.retries,
			.rnr_retries = progress.rnr_retries,
			.waiting = qp->sq.tail - qp->sq.una,
			.path_mtu = qp->pmtu,
			.rate = pacer_rate(qp),
			.qkey = qp->qkey,
			.pdn = qp->xrcd ? 0 : qp->pd->number,
			.scqn = qp->scq ? qp->scq->number : 0,
			.rcqn = qp->xrcd || !qp->rcq ? 0 : qp->rcq->number,
			.xrcdn = qp->xrcd ? qp->xrcd->number : 0,
		};

		fn(&info, arg);
	}
	return walk->at < numtab_slots(&dev->qps);
}

bool skua_dev_for_each_cq(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn,
			  void *arg)
{
	const struct cq *cq;
	int32_t budget = STEP_COST;

	begin(walk, &dev->cqs);
	while ((cq = numtab_walk(&dev->cqs, &walk->at, &budget))) {
		struct skua_cq_info info = {
			.cqn = cq->number,
			.eqn = cq->eq->number,
			.size = cq->size,
			.pi = cq->pi,
			.ci = cq->ci,
			.queues = cq->refs,
			.error = cq->error,
		};

		fn(&info, arg);
	}
	return walk->at < numtab_slots(&dev->cqs);
}

bool skua_dev_for_each_mr(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn,
			  void *arg)
{
	const struct mr *mr;
	int32_t budget = STEP_COST;

	begin(walk, &dev->mrs);
	while ((mr = numtab_walk(&dev->mrs, &walk->at, &budget))) {
		struct skua_mr_info info = {
			.key = mr->key,
			.pdn = mr_pd(mr)->number,
			.window = mr_is_window(mr) ? mr->type & ~MR_IS_WINDOW : 0,
			.type = mr->type,
			.valid = mr->valid,
			.access = mr->access,
			.iova = mr->iova,
			.length = mr_is_gapped(mr) ? gaps_length(mr) : mr->length,
			.pages = mr_is_window(mr) ? 0 : mr->pages.n,
			.page_size = mr->pages.n && mr->pages.log ? 1ull << mr->pages.log : 0,
		};

		fn(&info, arg);
	}
	return walk->at < numtab_slots(&dev->mrs);
}

struct capture *skua_dev_set_capture(struct skua_dev *dev, struct capture *cap)
{
	return port_set_capture(dev->port, cap);
}

bool skua_dev_set_impair(struct skua_dev *dev, const struct impair_config *config)
{
	return port_set_impair(dev->port, config);
}

const struct impair_config *skua_dev_get_impair(const struct skua_dev *dev)
{
	return port_impair(dev->port);
}

void skua_dev_set_link(struct skua_dev *dev, bool up)
{
	if (port_is_up(dev->port) == up)
		return;
	port_set_up(dev->port, up);
	if (!dev_running(dev))
		return;
	/* One event of the port is enough: the host asks how the port is now. */
	async_event(dev, &dev->port_event, up ? SKUA_EVENT_PORT_UP : SKUA_EVENT_PORT_DOWN, 1, 0);
	dev->port_event.type = up ? SKUA_EVENT_PORT_UP : SKUA_EVENT_PORT_DOWN;
}
