// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast: which QPs receive from which group. The core saw to the QP's type and the address. */
#include <linux/skua/command.h>

#include "qp.h"
#include "skua_ib.h"

int skua_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return skua_cmd_attach_mcast(to_skua_dev(ibqp->device), ibqp->qp_num, gid->raw);
}

int skua_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return skua_cmd_detach_mcast(to_skua_dev(ibqp->device), ibqp->qp_num, gid->raw);
}
