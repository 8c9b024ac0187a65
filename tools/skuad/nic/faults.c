// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Faults that a test asks for by skuactl. The device then behaves as the manual says a device
 * with that fault does; no fault is worse than what the manual lets happen.
 */
#include <errno.h>

#include "core/qp.h"
#include "nic/control.h"
#include "nic/dev.h"

#define STRAY_TYPE	0x7f	/* of no event */
#define STRAY_QPN	0xffffff

static int inject_cq_error(struct skua_dev *dev, uint32_t number)
{
	struct cq *cq = numtab_get(&dev->cqs, number);

	if (!cq)
		return -ENOENT;
	if (!cq->error)
		cq_fail(dev, cq);
	return 0;
}

static int inject_qp_error(struct skua_dev *dev, uint32_t number, uint8_t event)
{
	struct skua_qp *qp = numtab_get(&dev->qps, number);

	if (!qp)
		return -ENOENT;
	qp_error(qp, event);
	return 0;
}

/* The link flaps faster than the host can take the events; the last one tells how it is. */
static int inject_eq_overflow(struct skua_dev *dev)
{
	uint8_t now = port_is_up(dev->port) ? SKUA_EVENT_PORT_UP : SKUA_EVENT_PORT_DOWN;
	uint8_t other = SKUA_EVENT_PORT_UP + SKUA_EVENT_PORT_DOWN - now;

	if (!dev->async_eq)
		return -ENXIO;
	for (uint32_t i = 0; i <= dev->async_eq->size && !dev->port_event.queued; i++) {
		async_event(dev, &dev->port_event, other, 1, 0);
		async_event(dev, &dev->port_event, now, 1, 0);
	}
	dev->port_event.type = now;
	return 0;
}

/* Events of a type and of objects that there are not. */
static int inject_stray_events(struct skua_dev *dev)
{
	static const uint8_t types[] = { STRAY_TYPE, SKUA_EVENT_QP_FATAL, SKUA_EVENT_CQ_ERR };

	if (!dev->async_eq)
		return -ENXIO;
	for (unsigned int i = 0; i < sizeof(types); i++)
		async_event(dev, &dev->inject.stray[i], types[i], UINT32_MAX, UINT64_MAX);
	return 0;
}

/* A receive of a QP that there is not. */
static int inject_stray_completion(struct skua_dev *dev, uint32_t number)
{
	struct cq *cq = numtab_get(&dev->cqs, number);
	struct skua_cqe cqe = {
		.qpn = htole32(STRAY_QPN),
		.opcode = SKUA_CQE_RECV,
	};

	if (!cq)
		return -ENOENT;
	cq_post(dev, cq, &cqe);
	return 0;
}

/* The QP completes the next entry of its RQ, whether it is posted or not. */
static int inject_stray_receive(struct skua_dev *dev, uint32_t number)
{
	struct skua_qp *qp = numtab_get(&dev->qps, number);
	struct skua_cqe cqe = { .opcode = SKUA_CQE_RECV };

	if (!qp || !qp->rq.size)
		return -ENOENT;
	cqe.cookie = htole32(qp->rq.ci & (qp->rq.size - 1));
	qp_complete_recv(qp, &cqe);
	return 0;
}

/* Like a device that was pulled out: nothing leaves it any more, and nothing gets in. */
static void vanish(struct skua_dev *dev)
{
	dev->inject.gone = true;
	dev->health = SKUA_HEALTH_INJECTED;
	dev->status |= SKUA_STATUS_FATAL;
}

static void heal(struct skua_dev *dev)
{
	dev->inject.commands = 0;
	dev->inject.error_in = 0;
	dev->inject.reads = 0;
	dev->inject.guise = SKUA_FAULT_NONE;
	dev->inject.go_back_n = false;
	if (dev->inject.gone)
		skua_dev_reset(dev);
}

int skua_dev_inject(struct skua_dev *dev, enum skua_fault fault, uint32_t number)
{
	switch (fault) {
	case SKUA_FAULT_NONE:
		heal(dev);
		return 0;
	case SKUA_FAULT_COMMAND_TIMEOUT:
		dev->inject.commands = number;
		return 0;
	case SKUA_FAULT_COMMAND_ERROR:
		dev->inject.error_in = number;
		return 0;
	case SKUA_FAULT_READ_TIMEOUT:
		dev->inject.reads = number;
		return 0;
	case SKUA_FAULT_GONE:
		vanish(dev);
		return 0;
	case SKUA_FAULT_FATAL:
		skua_dev_fail(dev, SKUA_HEALTH_INJECTED);
		return 0;
	case SKUA_FAULT_OTHER_SIGNATURE:
	case SKUA_FAULT_OTHER_VERSION:
	case SKUA_FAULT_NEW_FEATURES:
	case SKUA_FAULT_NO_LIMITS:
	case SKUA_FAULT_NO_MRS:
		dev->inject.guise = (uint8_t)fault;
		return 0;
	case SKUA_FAULT_GO_BACK_N:
		dev->inject.go_back_n = true;
		return 0;
	default:
		break;
	}
	if (!dev_running(dev))
		return -ENXIO;
	switch (fault) {
	case SKUA_FAULT_CQ_ERROR:
		return inject_cq_error(dev, number);
	case SKUA_FAULT_QP_FATAL:
		return inject_qp_error(dev, number, SKUA_EVENT_QP_FATAL);
	case SKUA_FAULT_QP_REQUEST_ERROR:
		return inject_qp_error(dev, number, SKUA_EVENT_QP_REQ_ERR);
	case SKUA_FAULT_QP_ACCESS_ERROR:
		return inject_qp_error(dev, number, SKUA_EVENT_QP_ACCESS_ERR);
	case SKUA_FAULT_EQ_OVERFLOW:
		return inject_eq_overflow(dev);
	case SKUA_FAULT_STRAY_EVENTS:
		return inject_stray_events(dev);
	case SKUA_FAULT_STRAY_COMPLETION:
		return inject_stray_completion(dev, number);
	case SKUA_FAULT_STRAY_RECEIVE:
		return inject_stray_receive(dev, number);
	default:
		return -EINVAL;
	}
}
