/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults: a QP waits for a page that the host is asked for. Each side of a QP has one fault at a time.
 */
#ifndef SKUAD_CORE_FAULT_H
#define SKUAD_CORE_FAULT_H

#include "core/qp.h"

/*
 * dev->miss was found on this @side of @qp. True: the QP waits for the page, and qp->ops->resumed() is called when it may
 * be there. False: the host has failed to bring it, so the access fails.
 */
bool fault_wait(struct skua_qp *qp, enum skua_page_fault_side side);

static inline bool fault_is_waiting(const struct skua_qp *qp, enum skua_page_fault_side side)
{
	return qp->faults[side].state == PAGE_FAULT_WAITING;
}

/* An access on this @side has succeeded, so that a failure before it is over. */
static inline void fault_over(struct skua_qp *qp, enum skua_page_fault_side side)
{
	if (qp->faults[side].state == PAGE_FAULT_FAILED)
		qp->faults[side].state = PAGE_FAULT_NONE;
}

/* The QP waits for no page any more. */
void fault_forget(struct skua_qp *qp);

/* Events that wait for room in the EQ may find it. */
void fault_event_retry(struct skua_dev *dev);

#endif /* SKUAD_CORE_FAULT_H */
