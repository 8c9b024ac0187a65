// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From an EQE to the owner of the object that it names.
 *
 * An owner is looked up under the lock of its table, in interrupt context or in the work of the
 * asynchronous EQ, and has a reference while its callback runs. Unwatching erases the entry, and
 * waits until the last reference is put: not for the handler or the work itself, which others
 * can keep busy. An EQE that is left over finds nothing, since numbers rest before they are given
 * out again (OBJ-4).
 */
#include <linux/skua/command.h>
#include <linux/skua/event.h>

#include "event.h"
#include "netdev.h"
#include "skua.h"

static int skua_watch_insert(struct xarray *table, u32 number, struct skua_watch *watch,
			     void *entry)
{
	refcount_set(&watch->users, 1);
	init_completion(&watch->unused);
	return xa_insert_irq(table, number, entry, GFP_KERNEL);
}

static void skua_watch_put(struct skua_watch *watch)
{
	if (refcount_dec_and_test(&watch->users))
		complete(&watch->unused);
}

static void skua_watch_remove(struct xarray *table, u32 number, struct skua_watch *watch)
{
	xa_erase_irq(table, number);
	skua_watch_put(watch);
	wait_for_completion(&watch->unused);
}

int skua_cq_watch(struct skua_dev *dev, struct skua_cq_watch *watch)
{
	return skua_watch_insert(&to_skua_nic(dev)->cqs, watch->cqn, &watch->watch, watch);
}
EXPORT_SYMBOL_NS_GPL(skua_cq_watch, SKUA_NS);

void skua_cq_unwatch(struct skua_dev *dev, struct skua_cq_watch *watch)
{
	skua_watch_remove(&to_skua_nic(dev)->cqs, watch->cqn, &watch->watch);
}
EXPORT_SYMBOL_NS_GPL(skua_cq_unwatch, SKUA_NS);

int skua_qp_watch(struct skua_dev *dev, struct skua_obj_watch *watch)
{
	return skua_watch_insert(&to_skua_nic(dev)->qps, watch->number, &watch->watch, watch);
}
EXPORT_SYMBOL_NS_GPL(skua_qp_watch, SKUA_NS);

void skua_qp_unwatch(struct skua_dev *dev, struct skua_obj_watch *watch)
{
	skua_watch_remove(&to_skua_nic(dev)->qps, watch->number, &watch->watch);
}
EXPORT_SYMBOL_NS_GPL(skua_qp_unwatch, SKUA_NS);

int skua_srq_watch(struct skua_dev *dev, struct skua_obj_watch *watch)
{
	return skua_watch_insert(&to_skua_nic(dev)->srqs, watch->number, &watch->watch, watch);
}
EXPORT_SYMBOL_NS_GPL(skua_srq_watch, SKUA_NS);

void skua_srq_unwatch(struct skua_dev *dev, struct skua_obj_watch *watch)
{
	skua_watch_remove(&to_skua_nic(dev)->srqs, watch->number, &watch->watch);
}
EXPORT_SYMBOL_NS_GPL(skua_srq_unwatch, SKUA_NS);

/* The watch with a reference, or NULL. */
static struct skua_cq_watch *skua_cq_watch_get(struct skua_nic *nic, u32 cqn)
{
	struct skua_cq_watch *watch;
	unsigned long irq;

	xa_lock_irqsave(&nic->cqs, irq);
	watch = xa_load(&nic->cqs, cqn);
	if (watch)
		refcount_inc(&watch->watch.users);
	xa_unlock_irqrestore(&nic->cqs, irq);
	return watch;
}

/* Of a QP or an SRQ: @table says which. */
static struct skua_obj_watch *skua_obj_watch_get(struct xarray *table, u32 number)
{
	struct skua_obj_watch *watch;

	xa_lock_irq(table);
	watch = xa_load(table, number);
	if (watch)
		refcount_inc(&watch->watch.users);
	xa_unlock_irq(table);
	return watch;
}

void skua_event_comp(struct skua_nic *nic, u32 cqn)
{
	struct skua_cq_watch *watch = skua_cq_watch_get(nic, cqn);

	if (!watch)
		return;
	watch->comp(watch);
	skua_watch_put(&watch->watch);
}

static void skua_event_cq(struct skua_nic *nic, u32 cqn)
{
	struct skua_cq_watch *watch = skua_cq_watch_get(nic, cqn);

	if (!watch)
		return;
	watch->error(watch);
	skua_watch_put(&watch->watch);
}

static void skua_event_obj(struct xarray *table, u32 number, u8 type)
{
	struct skua_obj_watch *watch = skua_obj_watch_get(table, number);

	if (!watch)
		return;
	watch->event(watch, type);
	skua_watch_put(&watch->watch);
}

void skua_fault_watch(struct skua_dev *dev, struct skua_fault_watch *watch)
{
	struct skua_nic *nic = to_skua_nic(dev);

	mutex_lock(&nic->fault_lock);
	nic->fault_watch = watch;
	mutex_unlock(&nic->fault_lock);
}
EXPORT_SYMBOL_NS_GPL(skua_fault_watch, SKUA_NS);

void skua_fault_unwatch(struct skua_dev *dev)
{
	skua_fault_watch(dev, NULL);
}
EXPORT_SYMBOL_NS_GPL(skua_fault_unwatch, SKUA_NS);

void skua_event_fault(struct skua_nic *nic, const struct skua_fault_eqe *eqe)
{
	mutex_lock(&nic->fault_lock);
	if (nic->fault_watch)
		nic->fault_watch->fault(nic->fault_watch, eqe);
	else
		skua_cmd_fault_resume(&nic->dev, le32_to_cpu(eqe->token), false);
	mutex_unlock(&nic->fault_lock);
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
	case SKUA_EVENT_LAST_WQE_REACHED:
		skua_event_obj(&nic->qps, number, eqe->type);
		break;
	case SKUA_EVENT_SRQ_ERR:
	case SKUA_EVENT_SRQ_LIMIT:
		skua_event_obj(&nic->srqs, number, eqe->type);
		break;
	default:
		/* Of a later version of the interface (GRO-2). */
		break;
	}
}
