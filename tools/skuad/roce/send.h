/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From a service to the port.
 */
#ifndef SKUAD_ROCE_SEND_H
#define SKUAD_ROCE_SEND_H

#include "core/qp.h"

/* Send a train whose path is filled in. A train that is lost counts as sent. @mark as in link/port.h. */
enum port_result roce_send_train(struct skua_qp *qp, const struct train *t, struct port_mark *mark);
/* The same for an RC or UC QP: the path is that of the QP. */
enum port_result roce_send(struct skua_qp *qp, struct train *t, struct port_mark *mark);

#endif /* SKUAD_ROCE_SEND_H */
