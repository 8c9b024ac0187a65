/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How fast things grow: of two answers, what happened in between, a second.
 */
#ifndef SKUAD_CTL_RATES_H
#define SKUAD_CTL_RATES_H

struct json_object;

/* Of two answers to "counters": objects like their "counters", a device each, of growth a second,
 * rounded. A counter that went back began anew, by a reset. */
struct json_object *rates_of(struct json_object *before, struct json_object *after);

/* Rows for a table of devices: from @rates, and an answer to "devices". */
struct json_object *rates_devices(struct json_object *rates, struct json_object *devices);

/*
 * Rows for a table of QPs, the busiest first, at most @max: from the answers to "counters" and
 * "qps" at two times. QPs that were not there before, or idle, are left out.
 */
struct json_object *rates_qps(struct json_object *before, struct json_object *after,
			      struct json_object *qps_before, struct json_object *qps_after,
			      unsigned int max);

#endif /* SKUAD_CTL_RATES_H */
