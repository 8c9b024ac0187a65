/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC: what its QPs do otherwise than those of RC.
 */
#ifndef SKUAD_ROCE_XRC_H
#define SKUAD_ROCE_XRC_H

#include "roce/rc.h"

/* What comes for a QP of type XRC_INI, which has a requester, and for one of type XRC_TGT, which has a responder. */
void xrc_ini_rx(struct skua_qp *qp, const struct train *t);
void xrc_tgt_rx(struct skua_qp *qp, const struct train *t);
/* XRC_TGT: @t is to be executed, for the SRQ that it names. False: it may not, and was refused. */
bool xrc_select_srq(struct skua_qp *qp, const struct train *t);
/* XRC_TGT: @srq goes. */
void xrc_forget_srq(struct skua_qp *qp, const struct srq *srq);

#endif /* SKUAD_ROCE_XRC_H */
