/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where a device does what an injected fault makes of it. nic/faults.c injects them.
 */
#ifndef SKUAD_CORE_INJECT_H
#define SKUAD_CORE_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "skua/cmd.h"

struct skua_dev;

/* Faults that a test can ask for; "number" is the object's, or how many. */
enum skua_fault {
	SKUA_FAULT_NONE,		/* end those that last */
	SKUA_FAULT_COMMAND_TIMEOUT,	/* the next @number commands vanish, resets or not */
	/* The @number-th command from now on completes with NO_RESOURCE; those that destroy do not count. */
	SKUA_FAULT_COMMAND_ERROR,
	SKUA_FAULT_READ_TIMEOUT,	/* the next @number reads of a register give all ones */
	SKUA_FAULT_FATAL,		/* as the manual has it, with health INJECTED */
	SKUA_FAULT_GONE,		/* reads give all ones; until a function level reset */
	SKUA_FAULT_CQ_ERROR,
	SKUA_FAULT_QP_FATAL,
	SKUA_FAULT_QP_REQUEST_ERROR,
	SKUA_FAULT_QP_ACCESS_ERROR,
	SKUA_FAULT_EQ_OVERFLOW,		/* more asynchronous events than there is room for */
	SKUA_FAULT_STRAY_COMPLETION,	/* in a CQ, of a QP that is not there */
	SKUA_FAULT_STRAY_RECEIVE,	/* a completion of the next entry of a QP's RQ, whether it is posted or not */
	SKUA_FAULT_STRAY_EVENTS,	/* of an unknown type, and of objects that are not there */
	/* Another device than its ids tell, resets or not; the last one asked for. */
	SKUA_FAULT_OTHER_SIGNATURE,
	SKUA_FAULT_OTHER_VERSION,	/* the next major one */
	SKUA_FAULT_NEW_FEATURES,	/* bits 32 to 63, none of which is known, are offered */
	SKUA_FAULT_NO_LIMITS,		/* all are zero */
	SKUA_FAULT_NO_MRS,		/* max_mr is */
	SKUA_FAULT_GO_BACK_N,		/* knows nothing of selective repeat, resets or not */
};

bool inject_takes_command(struct skua_dev *dev);	/* true: the one just fetched vanishes */
/* True: the one just fetched, which is right otherwise, fails. */
bool inject_fails_command(struct skua_dev *dev, const struct skua_cmd *cmd);
void inject_reset(struct skua_dev *dev);
/* What the host is told instead, if the device poses as another. */
uint32_t inject_register(struct skua_dev *dev, uint64_t offset, uint32_t value);
void inject_caps(const struct skua_dev *dev, struct skua_device_caps *caps);

#endif /* SKUAD_CORE_INJECT_H */
