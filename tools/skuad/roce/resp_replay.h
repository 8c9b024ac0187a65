/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * READs and atomics that come again.
 */
#ifndef SKUAD_ROCE_RESP_REPLAY_H
#define SKUAD_ROCE_RESP_REPLAY_H

#include "roce/rc.h"

void resp_replay_read(struct skua_qp *qp, const struct train *t);
/* Anything but a READ: it is answered again, and not carried out again. */
void resp_replay_result(struct skua_qp *qp, const struct train *t);

#endif /* SKUAD_ROCE_RESP_REPLAY_H */
