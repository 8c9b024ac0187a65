/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: life and death of the device.
 */
#ifndef SKUA_HEALTH_H
#define SKUA_HEALTH_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/workqueue.h>

struct skua_dev;
struct skua_nic;

enum skua_state {
	SKUA_STATE_ALIVE,
	SKUA_STATE_DYING,	/* declared dead; may still reach host memory */
	SKUA_STATE_DEAD,	/* was reset or cut off: host memory is safe */
};

/**
 * struct skua_nic_health - life and death of the device
 * @state: enum skua_state; only ever grows, unless the device is brought up anew
 * @why: cause of death; it and the next two are for who sees SKUA_STATE_DEAD
 * @last_status: STATUS at death, before the device was reset
 * @last_code: HEALTH at death, enum skua_health
 * @fenced: completed when the device can no longer reach host memory
 * @dead: carries death out
 * @poll: looks at STATUS now and then
 * @misses: looks in a row that were not answered; @poll's
 */
struct skua_nic_health {
	atomic_t state;
	const char *why;
	u32 last_status;
	u32 last_code;
	struct completion fenced;
	struct work_struct dead;
	struct delayed_work poll;
	unsigned int misses;
};

/* False from the moment of death on, when the device may still reach host memory. */
bool skua_dev_alive(struct skua_dev *dev);
enum skua_state skua_health_state(struct skua_nic *nic);
void skua_health_init(struct skua_nic *nic);
void skua_health_start(struct skua_nic *nic);
void skua_health_stop(struct skua_nic *nic);
/* The device is dead, because of @why (a constant). Any context; only the first call counts. */
void skua_health_dead(struct skua_nic *nic, const char *why);
/* Look at STATUS soon. Any context. */
void skua_health_check(struct skua_nic *nic);
/* Wait until a dead device no longer reaches host memory. Bounded. */
void skua_health_wait_fenced(struct skua_nic *nic);
/* A dead device that nobody uses any more is about to be brought up. */
void skua_health_revive(struct skua_nic *nic);
/* Bringing it up failed, and was undone: it is dead again, and fenced. */
void skua_health_bury(struct skua_nic *nic);

#endif /* SKUA_HEALTH_H */
