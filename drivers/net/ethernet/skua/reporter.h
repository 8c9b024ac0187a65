/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: devlink's health reporter. What is not said to be otherwise is called under devlink's
 * lock.
 */
#ifndef SKUA_REPORTER_H
#define SKUA_REPORTER_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct devlink_fmsg;
struct devlink_health_reporter;
struct skua_nic;

/**
 * struct skua_reporter - the health reporter
 * @health: as devlink knows it
 * @report: tells devlink that the device is dead; disabled while there is nobody to tell
 */
struct skua_reporter {
	struct devlink_health_reporter *health;
	struct work_struct report;
};

void skua_reporter_init(struct skua_nic *nic);
int skua_reporter_create(struct skua_nic *nic);
void skua_reporter_destroy(struct skua_nic *nic);
/*
 * Report deaths from now on, the device's last one included; and no more. Without devlink's lock,
 * which the work takes: once the instance is registered, and before it is unregistered.
 */
void skua_reporter_start(struct skua_nic *nic);
void skua_reporter_stop(struct skua_nic *nic);
/* The device is dead. Any context. */
void skua_reporter_dead(struct skua_nic *nic);
/* The device was brought up anew, or could not be. */
void skua_reporter_update(struct skua_nic *nic);

/* Parts of messages. A nest is an object of pairs that has a name. */
void skua_fmsg_nest_start(struct devlink_fmsg *fmsg, const char *name);
void skua_fmsg_nest_end(struct devlink_fmsg *fmsg);
void skua_fmsg_put_hex(struct devlink_fmsg *fmsg, const char *name, u32 value);

#endif /* SKUA_REPORTER_H */
