// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The GID table: the core decides what stands where, from the addresses of the network
 * interface and of its VLANs; the device is told.
 */
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>

#include <linux/skua/command.h>

#include "skua_ib.h"

int skua_ib_add_gid(const struct ib_gid_attr *attr, void **context)
{
	u8 mac[ETH_ALEN];
	u16 vlan;
	int err;

	/* @vlan is 0xffff where there is none: SKUA_VLAN_NONE. */
	err = rdma_read_gid_l2_fields(attr, &vlan, mac);
	if (err)
		return err;
	return skua_cmd_set_gid(to_skua_dev(attr->device), attr->index, attr->gid.raw, mac, vlan);
}

int skua_ib_del_gid(const struct ib_gid_attr *attr, void **context)
{
	return skua_cmd_clear_gid(to_skua_dev(attr->device), attr->index);
}
