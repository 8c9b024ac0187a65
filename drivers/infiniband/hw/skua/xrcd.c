// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* XRC domains. The core knows which processes share one. */
#include <linux/skua/command.h>

#include "skua_ib.h"
#include "xrcd.h"

int skua_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	return skua_cmd_create_xrcd(to_skua_dev(ibxrcd->device), &to_skua_ib_xrcd(ibxrcd)->xrcdn);
}

/*
 * Whatever comes with it is ignored: if this fails, the core counts a user of the domain that is
 * not there, and can never deallocate the domain.
 */
int skua_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	skua_cmd_destroy_xrcd(to_skua_dev(ibxrcd->device), to_skua_ib_xrcd(ibxrcd)->xrcdn);
	return 0;
}
