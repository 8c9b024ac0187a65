// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From an EQE to the owner of the object that it names.
 *
 * The tables are read without a lock: completion events in interrupt context, asynchronous ones
 * in the work of their EQ. Unwatching erases the entry and then waits until neither runs. An EQE
 * that is left over finds nothing, since numbers rest before they are given out again (OBJ-4).
 */
#include <linux/interrupt.h>

#include <linux/skua/event.h>

#include "skua.h"

int skua_cq_watch(struct skua_dev *dev, struct skua_cq_watch *watch)
{
	return xa_insert(&to_skua_nic(dev)->cqs, watch->cqn, watch, GFP_KERNEL);
}
EXPORT_SYMBOL_GPL(skua_cq_watch);

void skua_cq_unwatch(struct skua_dev *dev, struct skua_cq_watch *watch)
{
	struct skua_nic *nic = to_skua_nic(dev);

	xa_erase(&nic->cqs, watch->cqn);
	synchronize_irq(nic->comp_eqs[watch->vector].irq);
	flush_work(&nic->async_eq.work);
}
EXPORT_SYMBOL_GPL(skua_cq_unwatch);

int skua_qp_watch(struct skua_dev *dev, struct skua_qp_watch *watch)
{
	return xa_insert(&to_skua_nic(dev)->qps, watch->qpn, watch, GFP_KERNEL);
}
EXPORT_SYMBOL_GPL(skua_qp_watch);

void skua_qp_unwatch(struct skua_dev *dev, struct skua_qp_watch *watch)
{
	struct skua_nic *nic = to_skua_nic(dev);

	xa_erase(&nic->qps, watch->qpn);
	flush_work(&nic->async_eq.work);
}
EXPORT_SYMBOL_GPL(skua_qp_unwatch);

void skua_event_comp(struct skua_nic *nic, u32 cqn)
{
	struct skua_cq_watch *watch = xa_load(&nic->cqs, cqn);

	if (watch)
		watch->comp(watch);
}

static void skua_event_cq(struct skua_nic *nic, u32 cqn)
{
	struct skua_cq_watch *watch = xa_load(&nic->cqs, cqn);

	if (watch)
		watch->error(watch);
}

static void skua_event_qp(struct skua_nic *nic, u32 qpn, u8 type)
{
	struct skua_qp_watch *watch = xa_load(&nic->qps, qpn);

	if (watch)
		watch->event(watch, type);
}

void skua_event_async(struct skua_nic *nic, const struct skua_async_eqe *eqe)
{
	u32 number = le32_to_cpu(eqe->number);

	switch (eqe->type) {
	case SKUA_EVENT_DEVICE_FATAL:
		skua_health_dead(nic, "it reported a fatal error");
		break;
	case SKUA_EVENT_PORT_UP:
	case SKUA_EVENT_PORT_DOWN:
		skua_netdev_link_changed(nic);
		break;
	case SKUA_EVENT_CQ_ERR:
		skua_event_cq(nic, number);
		break;
	case SKUA_EVENT_QP_FATAL:
	case SKUA_EVENT_QP_REQ_ERR:
	case SKUA_EVENT_QP_ACCESS_ERR:
	case SKUA_EVENT_COMM_EST:
	case SKUA_EVENT_SQ_DRAINED:
		skua_event_qp(nic, number, eqe->type);
		break;
	default:
		/* Of a later version of the interface (GRO-2). */
		break;
	}
}
