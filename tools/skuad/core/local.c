// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WQEs that send nothing: they are carried out here when their turn comes (manual: ordering).
 *
 * What takes access away is a fence: it is done when no train of any QP refers to the memory any more.
 */
#include "core/mw.h"
#include "core/qp.h"
#include "core/tags.h"

/* What of a list may be read: a longer one is refused without a look at it. */
static int32_t list_bytes(const struct skua_wqe_reg_mr *reg)
{
	uint32_t most = reg->log_page ? LIMIT_FAST_PAGES : LIMIT_FAST_PIECES, n = le32toh(reg->npages);
	size_t entry = reg->log_page ? sizeof(uint64_t) : sizeof(struct skua_piece);

	return (int32_t)((n < most ? n : most) * entry);
}

/* *@fence: it has taken access away. */
static int begin(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget, bool *fence)
{
	switch (wqe->opcode) {
	case SKUA_WQE_REG_MR:
		*budget -= list_bytes(wqe->reg);
		return mr_register(qp->dev, qp->pd, qp->privileged, wqe->reg);
	case SKUA_WQE_BIND_MW:
		return mw_bind(qp, wqe->bind, fence);
	case SKUA_WQE_LOCAL_INV:
		*fence = true;
		return mr_invalidate(qp, wqe->imm, false);
	case SKUA_WQE_TAG_ADD:
	case SKUA_WQE_TAG_DEL:
	case SKUA_WQE_TAG_SYNC:
		return tags_run(qp, wqe);
	default:
		return SKUA_VENDOR_ERR_NONE;
	}
}

bool sq_run_local(struct skua_qp *qp, struct send_wqe *wqe, int32_t *budget)
{
	bool fence = false;
	int err;

	if (wqe->opcode == SKUA_WQE_LOCAL_INV && qp->sq.una != qp->sq.nxt)
		return false;
	if (!wqe->begun) {
		err = begin(qp, wqe, budget, &fence);
		if (err) {
			wqe->status = wqe->opcode == SKUA_WQE_BIND_MW ? SKUA_CQE_MW_BIND_ERR : SKUA_CQE_LOC_QP_OP_ERR;
			wqe->vendor_err = (uint8_t)err;
			return true;
		}
		if (!fence)
			return true;
		wqe->ticket = port_ticket(qp->dev->port);
		wqe->begun = true;
	}
	qp->sq.busy = !port_drained(qp->dev->port, wqe->ticket);
	return !qp->sq.busy;
}
