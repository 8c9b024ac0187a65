/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counter sets: what some QPs count apart from the others (manual: statistics).
 *
 * A QP counts where its pointer says, so one without a set costs nothing. The device's counters are its own set, those
 * of sets that are gone, and those of all sets together.
 */
#ifndef SKUAD_CORE_COUNTER_H
#define SKUAD_CORE_COUNTER_H

#include "core/device.h"

struct counter_set {
	uint32_t number;
	uint32_t qps;			/* bound to it */
	struct device_stats stats;
};

/* The counters of the whole function. */
void counter_sum(const struct skua_dev *dev, struct device_stats *sum);
/* @qp is about to go. */
void counter_forget_qp(struct skua_qp *qp);

#endif /* SKUAD_CORE_COUNTER_H */
