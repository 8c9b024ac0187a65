// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues and their interrupts.
 *
 * Vector 0 serves the asynchronous EQ and that of page faults, each left to a work, since its
 * events lead to commands and to handlers that sleep. Each other vector has a completion EQ, whose
 * events are passed on in the handler.
 *
 * Two rules of the device shape the loops. The consumer index is published past an EQE before
 * the EQE is acted on (EVT-3), because a CQ that fires again while its EQE counts as unconsumed
 * gets no other. And before idling the host asks for an interrupt at its index, then looks once
 * more (EVT-10).
 *
 * A program that arms its CQ in a loop can keep an EQ from running empty. So the handler takes
 * a bounded number of events and leaves more to its thread, which gives way to others.
 */
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include <linux/skua/event.h>

#include "cmd.h"
#include "event.h"
#include "skua.h"

/* Of asynchronous events more are kept in the device (EVT-5), so any size will do. */
#define SKUA_ASYNC_EQ_SIZE	1024

/* A completion EQ limits the CQs of its vector (EQ-3); 16 bytes for each. */
#define SKUA_COMP_EQ_SIZE	16384

/* Other page faults wait in the device. */
#define SKUA_FAULT_EQ_SIZE	256

#define SKUA_EQ_BUDGET		256

#define SKUA_WORK_EQE_SIZE	64
static_assert(sizeof(struct skua_async_eqe) == SKUA_WORK_EQE_SIZE);
static_assert(sizeof(struct skua_fault_eqe) == SKUA_WORK_EQE_SIZE);

/* Of either kind of EQE the flags are the last byte. */
static void *skua_eq_next(struct skua_eq *eq, size_t eqe_size)
{
	u8 *eqe = eq->ring.va + (eq->ci & (eq->size - 1)) * eqe_size;
	u8 phase = eq->ci & eq->size ? 0 : SKUA_EQE_PHASE;

	if ((READ_ONCE(eqe[eqe_size - 1]) & SKUA_EQE_PHASE) != phase)
		return NULL;
	/* The rest of it is read after the phase. */
	dma_rmb();
	return eqe;
}

static void skua_eq_consume(struct skua_eq *eq)
{
	eq->ci++;
	/*
	 * The EQE was read before it is given back. The second barrier makes the index visible
	 * before what the caller now does about the event, which may let the CQ fire again
	 * (EVT-3).
	 */
	dma_mb();
	WRITE_ONCE(eq->dbr->ci, cpu_to_le32(eq->ci));
	dma_mb();
}

/* Ask for an interrupt at the next event. False if there is one already. */
static bool skua_eq_idle(struct skua_eq *eq, size_t eqe_size)
{
	if (!skua_has(&eq->nic->dev, SKUA_F_EVENT_IDX))
		return !skua_eq_next(eq, eqe_size);

	WRITE_ONCE(eq->dbr->event, cpu_to_le32(eq->ci));
	/*
	 * StoreLoad: the request is stored before the EQE is looked at. Pairs with the device's
	 * barrier between writing an EQE and reading the event word.
	 */
	dma_mb();
	return !skua_eq_next(eq, eqe_size);
}

/* Pass on events. True if there may be more. */
static bool skua_comp_eq_run(struct skua_eq *eq)
{
	struct skua_comp_eqe *eqe;
	unsigned int budget = SKUA_EQ_BUDGET;

	lockdep_assert_held(&eq->lock);
	do {
		while ((eqe = skua_eq_next(eq, sizeof(*eqe)))) {
			u32 cqn = le32_to_cpu(eqe->cqn);

			if (!budget--)
				return true;
			skua_eq_consume(eq);
			skua_event_comp(eq->nic, cqn);
		}
	} while (!skua_eq_idle(eq, sizeof(*eqe)));
	return false;
}

static irqreturn_t skua_comp_irq(int irq, void *data)
{
	struct skua_eq *eq = data;
	bool more;

	spin_lock(&eq->lock);
	more = skua_comp_eq_run(eq);
	spin_unlock(&eq->lock);
	return more ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

static irqreturn_t skua_comp_thread(int irq, void *data)
{
	struct skua_eq *eq = data;
	bool more;

	do {
		spin_lock_irq(&eq->lock);
		more = skua_comp_eq_run(eq);
		spin_unlock_irq(&eq->lock);
		cond_resched();
	} while (more);
	return IRQ_HANDLED;
}

static void skua_async_work(struct work_struct *work)
{
	struct skua_eq *eq = container_of(work, struct skua_eq, work);
	struct skua_async_eqe *eqe, copy;

	do {
		while ((eqe = skua_eq_next(eq, sizeof(*eqe)))) {
			copy = *eqe;
			skua_eq_consume(eq);
			skua_event_async(eq->nic, &copy);
			cond_resched();
		}
	} while (!skua_eq_idle(eq, sizeof(*eqe)));
}

static void skua_fault_work(struct work_struct *work)
{
	struct skua_eq *eq = container_of(work, struct skua_eq, work);
	struct skua_fault_eqe *eqe, copy;

	do {
		while ((eqe = skua_eq_next(eq, sizeof(*eqe)))) {
			copy = *eqe;
			skua_eq_consume(eq);
			skua_event_fault(eq->nic, &copy);
			cond_resched();
		}
	} while (!skua_eq_idle(eq, sizeof(*eqe)));
}

/* Of an EQ that is left to a work. */
static irqreturn_t skua_work_irq(int irq, void *data)
{
	struct skua_eq *eq = data;

	/*
	 * The work owns the EQ's index. If it moves meanwhile, the worst is a work for nothing: an
	 * event behind the index that is read here raises an interrupt of its own, or is found
	 * by the work before it idles.
	 */
	if (!skua_eq_next(eq, SKUA_WORK_EQE_SIZE))
		return IRQ_HANDLED;
	queue_work(skua_wq, &eq->work);
	return IRQ_HANDLED;
}

static int skua_eq_create(struct skua_nic *nic, struct skua_eq *eq, enum skua_eq_type type,
			  unsigned int vector, u32 size, size_t eqe_size)
{
	struct skua_cmd_create_eq create = {};
	int err;

	eq->nic = nic;
	eq->size = size;
	eq->ci = 0;
	spin_lock_init(&eq->lock);
	eq->irq = pci_irq_vector(nic->dev.pdev, vector);

	err = skua_mem_alloc(&nic->dev, &eq->ring, size * eqe_size);
	if (err)
		return err;
	eq->dbr = skua_dbr_alloc(&nic->dev, &eq->dbr_dma);
	if (!eq->dbr) {
		err = -ENOMEM;
		goto err_ring;
	}

	create.type = type;
	create.log_size = ilog2(size);
	create.vector = cpu_to_le16(vector);
	create.dbr_addr = cpu_to_le64(eq->dbr_dma);
	skua_mem_describe(&eq->ring, &create.ring);
	err = skua_cmd_create_eq(nic, &create, &eq->eqn);
	if (err)
		goto err_dbr;
	return 0;

err_dbr:
	skua_dbr_free(&nic->dev, eq->dbr, eq->dbr_dma);
err_ring:
	skua_mem_free(&nic->dev, &eq->ring);
	return err;
}

/* What is left of an EQ that the device no longer has. */
static void skua_eq_free(struct skua_nic *nic, struct skua_eq *eq)
{
	skua_dbr_free(&nic->dev, eq->dbr, eq->dbr_dma);
	skua_mem_free(&nic->dev, &eq->ring);
}

/* Vector 0 is shared. With a single vector all EQs share it. */
static unsigned long skua_irq_flags(unsigned int vector)
{
	return vector ? 0 : IRQF_SHARED;
}

static int skua_work_eq_create(struct skua_nic *nic, struct skua_eq *eq, enum skua_eq_type type,
			       u32 size, const char *name, work_func_t func)
{
	int err;

	INIT_WORK(&eq->work, func);
	size = min_t(u32, size, rounddown_pow_of_two(nic->dev.limits.max_eqe));
	err = skua_eq_create(nic, eq, type, 0, size, SKUA_WORK_EQE_SIZE);
	if (err)
		return err;

	snprintf(eq->name, sizeof(eq->name), SKUA_NAME "-%s@%s", name, pci_name(nic->dev.pdev));
	err = request_irq(eq->irq, skua_work_irq, skua_irq_flags(0), eq->name, eq);
	if (err)
		goto err_destroy;
	/* Events that came before there was a handler. */
	queue_work(skua_wq, &eq->work);
	return 0;

err_destroy:
	skua_cmd_destroy_eq(nic, eq->eqn);
	skua_eq_free(nic, eq);
	return err;
}

static void skua_work_eq_destroy(struct skua_nic *nic, struct skua_eq *eq)
{
	/* First the device: what it raised last is handled before its interrupt is taken away. */
	skua_cmd_destroy_eq(nic, eq->eqn);
	free_irq(eq->irq, eq);
	/* The handler, which queues the work, is gone. */
	cancel_work_sync(&eq->work);
	skua_eq_free(nic, eq);
}

static int skua_async_eq_create(struct skua_nic *nic)
{
	return skua_work_eq_create(nic, &nic->async_eq, SKUA_EQ_ASYNC, SKUA_ASYNC_EQ_SIZE, "async",
				   skua_async_work);
}

static void skua_async_eq_destroy(struct skua_nic *nic)
{
	skua_work_eq_destroy(nic, &nic->async_eq);
}

static int skua_fault_eq_create(struct skua_nic *nic)
{
	if (!skua_has(&nic->dev, SKUA_F_ON_DEMAND))
		return 0;
	return skua_work_eq_create(nic, &nic->fault_eq, SKUA_EQ_FAULT, SKUA_FAULT_EQ_SIZE, "fault",
				   skua_fault_work);
}

static void skua_fault_eq_destroy(struct skua_nic *nic)
{
	if (skua_has(&nic->dev, SKUA_F_ON_DEMAND))
		skua_work_eq_destroy(nic, &nic->fault_eq);
}

static int skua_comp_eq_create(struct skua_nic *nic, unsigned int i)
{
	struct skua_eq *eq = &nic->comp_eqs[i];
	unsigned int vector = nic->num_vectors == 1 ? 0 : 1 + i;
	u32 size = min_t(u32, SKUA_COMP_EQ_SIZE, rounddown_pow_of_two(nic->dev.limits.max_eqe));
	unsigned int cpu;
	int err;

	err = skua_eq_create(nic, eq, SKUA_EQ_COMP, vector, size, sizeof(struct skua_comp_eqe));
	if (err)
		return err;

	snprintf(eq->name, sizeof(eq->name), SKUA_NAME "-comp%u@%s", i, pci_name(nic->dev.pdev));
	err = request_threaded_irq(eq->irq, skua_comp_irq, skua_comp_thread, skua_irq_flags(vector),
				   eq->name, eq);
	if (err)
		goto err_destroy;
	if (nic->num_vectors > 1) {
		cpu = cpumask_local_spread(i, dev_to_node(skua_nic_device(nic)));
		irq_set_affinity_and_hint(eq->irq, cpumask_of(cpu));
	}
	return 0;

err_destroy:
	skua_cmd_destroy_eq(nic, eq->eqn);
	skua_eq_free(nic, eq);
	return err;
}

static void skua_comp_eq_destroy(struct skua_nic *nic, unsigned int i)
{
	struct skua_eq *eq = &nic->comp_eqs[i];

	if (nic->num_vectors > 1)
		irq_update_affinity_hint(eq->irq, NULL);
	skua_cmd_destroy_eq(nic, eq->eqn);
	free_irq(eq->irq, eq);
	skua_eq_free(nic, eq);
}

/* One vector for each CPU, as far as they go, and one for all other events. */
static int skua_vectors_alloc(struct skua_nic *nic)
{
	unsigned int others = skua_has(&nic->dev, SKUA_F_ON_DEMAND) ? 2 : 1;
	int vectors;

	vectors = pci_alloc_irq_vectors(nic->dev.pdev, 1, 1 + num_online_cpus(), PCI_IRQ_MSIX);
	if (vectors < 0) {
		dev_err(skua_nic_device(nic), "no MSI-X vectors, error %d\n", vectors);
		return vectors;
	}
	nic->num_vectors = vectors;
	nic->dev.num_comp_vectors = min_t(u32, max(vectors - 1, 1),
					  nic->dev.limits.max_eq - others);
	return 0;
}

int skua_eqs_create(struct skua_nic *nic)
{
	unsigned int i;
	int err;

	err = skua_vectors_alloc(nic);
	if (err)
		return err;
	nic->comp_eqs = kcalloc(nic->dev.num_comp_vectors, sizeof(*nic->comp_eqs), GFP_KERNEL);
	if (!nic->comp_eqs) {
		err = -ENOMEM;
		goto err_vectors;
	}
	err = skua_async_eq_create(nic);
	if (err)
		goto err_eqs;
	err = skua_fault_eq_create(nic);
	if (err)
		goto err_async;
	for (i = 0; i < nic->dev.num_comp_vectors; i++) {
		err = skua_comp_eq_create(nic, i);
		if (err)
			goto err_comp;
	}
	nic->dev.limits.max_cq = min(nic->dev.limits.max_cq, nic->comp_eqs[0].size);
	return 0;

err_comp:
	while (i--)
		skua_comp_eq_destroy(nic, i);
	skua_fault_eq_destroy(nic);
err_async:
	skua_async_eq_destroy(nic);
err_eqs:
	kfree(nic->comp_eqs);
err_vectors:
	pci_free_irq_vectors(nic->dev.pdev);
	dev_err(skua_nic_device(nic), "cannot create event queues, error %d\n", err);
	return err;
}

void skua_eqs_destroy(struct skua_nic *nic)
{
	unsigned int i = nic->dev.num_comp_vectors;

	while (i--)
		skua_comp_eq_destroy(nic, i);
	skua_fault_eq_destroy(nic);
	skua_async_eq_destroy(nic);
	kfree(nic->comp_eqs);
	pci_free_irq_vectors(nic->dev.pdev);
}

static void skua_eq_dump(const struct skua_eq *eq, struct devlink_fmsg *fmsg)
{
	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_u32_pair_put(fmsg, "eqn", eq->eqn);
	devlink_fmsg_u32_pair_put(fmsg, "size", eq->size);
	devlink_fmsg_u32_pair_put(fmsg, "irq", eq->irq);
	devlink_fmsg_u32_pair_put(fmsg, "consumer_index", READ_ONCE(eq->ci));
	devlink_fmsg_obj_nest_end(fmsg);
}

void skua_eqs_dump(struct skua_nic *nic, struct devlink_fmsg *fmsg)
{
	unsigned int i;

	devlink_fmsg_arr_pair_nest_start(fmsg, "event_queues");
	skua_eq_dump(&nic->async_eq, fmsg);
	if (skua_has(&nic->dev, SKUA_F_ON_DEMAND))
		skua_eq_dump(&nic->fault_eq, fmsg);
	for (i = 0; i < nic->dev.num_comp_vectors; i++)
		skua_eq_dump(&nic->comp_eqs[i], fmsg);
	devlink_fmsg_arr_pair_nest_end(fmsg);
}
