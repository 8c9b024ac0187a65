// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * devlink: what the device is, its parameters, and reload.
 *
 * A reload brings the device up anew, as a reset from outside does (main.c): the netdev stays, and
 * the RDMA device is removed and registered again, unless the parameter enable_rdma is false.
 * There is no devlink port: devlink wants ports, and so their netdevs, to go in a reload.
 */
#include "compat.h"
#include "devlink.h"
#include "regs.h"
#include "skua.h"

/* What the device is */

static int skua_devlink_put_serial(struct devlink_info_req *req, const u8 *guid)
{
	char text[3 * 8];

	snprintf(text, sizeof(text), "%8phD", guid);
	return devlink_info_serial_number_put(req, text);
}

/* The kernel writes both as major << 16 | minor. */
static int skua_devlink_put_version(struct devlink_info_req *req, const char *name, u32 version)
{
	char text[16];

	snprintf(text, sizeof(text), "%u.%u", version >> 16, version & 0xffff);
	return devlink_info_version_running_put(req, name, text);
}

static int skua_devlink_info_get(struct devlink *devlink, struct devlink_info_req *req,
				 struct netlink_ext_ack *extack)
{
	struct skua_nic *nic = devlink_priv(devlink);
	const struct skua_limits *limits = &nic->dev.limits;
	int err;

	err = skua_devlink_put_serial(req, limits->guid);
	if (err)
		return err;
	err = skua_devlink_put_version(req, DEVLINK_INFO_VERSION_GENERIC_FW, limits->fw_version);
	if (err)
		return err;
	return skua_devlink_put_version(req, DEVLINK_INFO_VERSION_GENERIC_FW_MGMT_API,
					nic->version);
}

/* Reload */

static int skua_devlink_reload_down(struct devlink *devlink, bool netns_change,
				    enum devlink_reload_action action,
				    enum devlink_reload_limit limit,
				    struct netlink_ext_ack *extack)
{
	struct skua_nic *nic = devlink_priv(devlink);

	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack, "the network and RDMA devices are moved one by one");
		return -EOPNOTSUPP;
	}
	if (nic->expected) {
		NL_SET_ERR_MSG_MOD(extack, "the device is being reset, or sleeps");
		return -EBUSY;
	}
	skua_halt(nic, "it is about to be reloaded");
	return 0;
}

static int skua_devlink_reload_up(struct devlink *devlink, enum devlink_reload_action action,
				  enum devlink_reload_limit limit, u32 *actions_performed,
				  struct netlink_ext_ack *extack)
{
	int err;

	err = skua_go_on(devlink_priv(devlink), "reload");
	if (err) {
		NL_SET_ERR_MSG_MOD(extack, "the device cannot be brought up, see the kernel's log");
		return err;
	}
	*actions_performed = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT);
	return 0;
}

const struct devlink_ops skua_devlink_ops = {
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = skua_devlink_reload_down,
	.reload_up = skua_devlink_reload_up,
	.info_get = skua_devlink_info_get,
};

/* Parameters */

static const struct devlink_param skua_devlink_params[] = {
	DEVLINK_PARAM_GENERIC(ENABLE_RDMA, BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL, NULL),
};

int skua_devlink_params_register(struct skua_nic *nic)
{
	struct devlink *devlink = priv_to_devlink(nic);
	union devlink_param_value value = { .vbool = true };
	int err;

	err = devl_params_register(devlink, skua_devlink_params, ARRAY_SIZE(skua_devlink_params));
	if (err)
		return err;
	devl_param_driverinit_value_set(devlink, DEVLINK_PARAM_GENERIC_ID_ENABLE_RDMA, &value);
	return 0;
}

void skua_devlink_params_unregister(struct skua_nic *nic)
{
	devl_params_unregister(priv_to_devlink(nic), skua_devlink_params,
			       ARRAY_SIZE(skua_devlink_params));
}

bool skua_devlink_rdma_is_enabled(struct skua_nic *nic)
{
	union devlink_param_value value;
	int err;

	err = devl_param_driverinit_value_get(priv_to_devlink(nic),
					      DEVLINK_PARAM_GENERIC_ID_ENABLE_RDMA, &value);
	return !err && value.vbool;
}
