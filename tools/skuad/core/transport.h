/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Transports: what makes a QP of one type. Each has a table of operations, which the device has by type of QP
 * (nic/dev.c). Those that are NULL do nothing.
 */
#ifndef SKUAD_CORE_TRANSPORT_H
#define SKUAD_CORE_TRANSPORT_H

#include "core/qp.h"

/* How far a QP is; for those who watch it. */
struct transport_progress {
	uint32_t una_psn;		/* oldest not acknowledged */
	uint32_t retries, rnr_retries;	/* of the oldest request, so far */
};

struct transport_ops {
	uint64_t features;		/* that it needs: bits 1 << SKUA_F_* */
	bool driver;			/* privileged QPs only, unless: */
	uint64_t open;			/* a feature that lets programs have them; 0: none does */
	bool srq;			/* its QPs may use one */
	bool no_recv;			/* its QPs have neither RQ nor receive CQ */
	bool target;			/* its QPs have an XRC domain, and no queue, CQ or PD */
	bool roce;			/* it takes packets: */
	enum transport service;		/* of these */
	size_t qp_size;			/* bytes of its QPs; they begin with struct skua_qp */

	/* It was created: all zero behind struct skua_qp. */
	void (*init)(struct skua_qp *qp);
	/* As after CREATE_QP: it has no state and no memory of its own; before it is freed, too. */
	void (*reset)(struct skua_qp *qp);
	/* Room for so many READs and atomics of the peer; enum skua_cmd_status. */
	int (*reserve)(struct skua_qp *qp, uint32_t max_dest_rd);
	/* qp->sq.psn was given: to RTS. */
	void (*start)(struct skua_qp *qp);

	/* A turn. *@budget: payload bytes, or what counts as such. True if anything was done. */
	bool (*run)(struct skua_qp *qp, int32_t *budget);
	/* Would it do something if run again? */
	bool (*is_pending)(const struct skua_qp *qp);
	/* For unacked_run(): the next train of the WQE. False: no room on the wire, or not yet. A WQE that is no good
	 * has a status then. */
	bool (*send)(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget);
	/* What is for it, and from where it expects it. */
	void (*rx)(struct skua_qp *qp, const struct train *t);
	/* XRC_TGT: a request that was held is about to be executed. False: it may not. */
	bool (*rx_held)(struct skua_qp *qp, const struct train *t);
	/* XRC_TGT: the SRQ goes, and what it has taken from there does. */
	void (*forget_srq)(struct skua_qp *qp, const struct srq *srq);

	/* The host has answered a page fault on this side. The turn that follows tries the same access again. */
	void (*resumed)(struct skua_qp *qp, enum skua_page_fault_side side);

	/* In ERR by the host's will: nothing is sent to the peer any more but what it is owed already. */
	void (*stop_responding)(struct skua_qp *qp);
	/* In ERR: complete what was taken from the queues. True: receives that are in the RQ may be flushed, too. */
	bool (*flush)(struct skua_qp *qp);
	/* It will be stopped by the host's will, who knows of all that has come: the peer must know, too. */
	void (*retire)(struct skua_qp *qp);
	/* Nothing of it is looked at any more: no timer of it fires. */
	void (*stop)(struct skua_qp *qp);

	void (*progress)(const struct skua_qp *qp, struct transport_progress *progress);
};

#endif /* SKUAD_CORE_TRANSPORT_H */
