// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Differences of counters and PSNs, a second.
 */
#include "ctl/rates.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#define PSN_MASK	0xffffffu

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? v : NULL;
}

static uint64_t number(struct json_object *o, const char *key)
{
	return json_object_get_uint64(member(o, key));
}

static void add(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void copy(struct json_object *to, const char *key, struct json_object *from)
{
	json_object_object_add(to, key, json_object_get(member(from, key)));
}

static double seconds(struct json_object *before, struct json_object *after)
{
	return (double)(number(after, "time_ns") - number(before, "time_ns")) / 1e9;
}

static uint64_t rate(uint64_t growth, double s)
{
	return s > 0 ? (uint64_t)((double)growth / s + 0.5) : 0;
}

struct json_object *rates_of(struct json_object *before, struct json_object *after)
{
	struct json_object *all = json_object_new_object();
	double s = seconds(before, after);

	json_object_object_foreach(member(after, "counters"), device, counters) {
		struct json_object *was = member(member(before, "counters"), device);
		struct json_object *o = json_object_new_object();

		json_object_object_foreach(counters, name, value) {
			uint64_t v = json_object_get_uint64(value), w = number(was, name);

			add(o, name, rate(v >= w ? v - w : v, s));
		}
		json_object_object_add(all, device, o);
	}
	return all;
}

struct json_object *rates_devices(struct json_object *rates, struct json_object *devices)
{
	static const char *const kept[] = { "name", "state", "link_up", "qps" };
	static const char *const shown[] = {
		"rdma_tx_packets", "rdma_tx_bytes", "rdma_rx_packets", "rdma_rx_bytes",
		"tx_frames", "rx_frames", "retransmits", "cqe_errors", "commands", "interrupts",
	};
	struct json_object *rows = json_object_new_array();
	struct json_object *list = member(devices, "devices");

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *d = json_object_array_get_idx(list, i);
		struct json_object *r = member(rates, json_object_get_string(member(d, "name")));
		struct json_object *row = json_object_new_object();

		if (!r) {
			json_object_put(row);
			continue;
		}
		for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++)
			copy(row, kept[k], d);
		for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++)
			copy(row, shown[k], r);
		json_object_array_add(rows, row);
	}
	return rows;
}

static bool same_qp(struct json_object *a, struct json_object *b)
{
	return number(a, "qpn") == number(b, "qpn") &&
	       !strcmp(json_object_get_string(member(a, "device")),
		       json_object_get_string(member(b, "device")));
}

/* Both lists are in the order in which the devices have them: a QP is not behind its old self by
 * more than what was destroyed before it, nor before it by more than what is new. */
static struct json_object *find_qp(struct json_object *list, struct json_object *qp, size_t *from)
{
	size_t n = json_object_array_length(list);

	for (size_t k = 0; k < n; k++) {
		struct json_object *o = json_object_array_get_idx(list, (*from + k) % n);

		if (same_qp(o, qp)) {
			*from = (*from + k + 1) % n;
			return o;
		}
	}
	return NULL;
}

static uint64_t psns(struct json_object *before, struct json_object *after, const char *key)
{
	return (number(after, key) - number(before, key)) & PSN_MASK;
}

static int by_packets(const void *a, const void *b)
{
	struct json_object *const *x = a, *const *y = b;
	uint64_t m = number(*x, "sent") + number(*x, "received");
	uint64_t n = number(*y, "sent") + number(*y, "received");

	return m < n ? 1 : m > n ? -1 : 0;
}

struct json_object *rates_qps(struct json_object *before, struct json_object *after,
			      struct json_object *qps_before, struct json_object *qps_after,
			      unsigned int max)
{
	static const char *const kept[] = {
		"device", "qpn", "state", "dest_qpn", "waiting", "retries", "rnr_retries",
	};
	struct json_object *rows = json_object_new_array();
	struct json_object *old = member(qps_before, "qps"), *new = member(qps_after, "qps");
	double s = seconds(before, after);
	size_t from = 0, n;

	for (size_t i = 0; i < json_object_array_length(new); i++) {
		struct json_object *qp = json_object_array_get_idx(new, i), *row;
		struct json_object *was = find_qp(old, qp, &from);
		uint64_t sent, received;

		if (!was || !member(qp, "sq_psn") || !member(was, "sq_psn"))
			continue;
		sent = psns(was, qp, "sq_psn");
		received = psns(was, qp, "rq_psn");
		if (!sent && !received && !number(qp, "waiting"))
			continue;
		row = json_object_new_object();
		for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++)
			copy(row, kept[k], qp);
		add(row, "sent", rate(sent, s));
		add(row, "received", rate(received, s));
		json_object_array_add(rows, row);
	}
	json_object_array_sort(rows, by_packets);
	n = json_object_array_length(rows);
	if (n > max)
		json_object_array_del_idx(rows, max, n - max);
	return rows;
}
