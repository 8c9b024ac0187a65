/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requests of the control socket: JSON objects in, JSON objects out.
 *
 *   {"cmd": "devices"}
 *   {"cmd": "qps", "device": "skua0"}		without a device: of all
 *   {"cmd": "cqs", "device": "skua0"}		the same
 *   {"cmd": "mrs", "device": "skua0"}		the same
 *   {"cmd": "counters", "device": "skua0"}	the same; "time_ns" is when, by a clock that only runs
 *   {"cmd": "link", "device": "skua0", "up": false}
 *   {"cmd": "inject", "device": "skua0", "fault": "qp-fatal", "number": 17}
 *						faults[] says which there are, and what number is
 *   {"cmd": "impair", "device": "skua0", "rules": ["drop=1%", "delay=1ms"]}
 *						link/impair.h; without rules: what there is
 *   {"cmd": "capture", "device": "skua0"}	with a descriptor to write to
 *   {"cmd": "capture-stop", "device": "skua0"}
 *
 * Every answer has "ok"; if that is false, "error" says in one line why. What a request has as
 * "id" its answer has, too.
 */
#ifndef SKUAD_CTL_REQUESTS_H
#define SKUAD_CTL_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct capture;
struct ctl_device;
struct json_object;

/* A capture belongs to the client that asked for it. */
struct ctl_capture {
	struct capture *cap;	/* NULL: none */
	const void *client;
};

struct ctl_state {
	const struct ctl_device *devices;
	struct ctl_capture *captures;	/* one for each device */
	unsigned int n;
};

/*
 * Carries out the request in @line (@len bytes). @fd is the descriptor that came with it, or
 * -1; it is -1 afterwards if the request took it. Returns the answer; NULL: no memory.
 */
struct json_object *ctl_request(struct ctl_state *state, const void *client, const char *line,
				int len, int *fd);

/* Ends the capture of device @i, if there is one. */
void ctl_end_capture(struct ctl_state *state, unsigned int i, uint64_t *written,
		     uint64_t *lost);

/* Ends the capture of device @i and tells why: the news for its client. */
struct json_object *ctl_capture_news(struct ctl_state *state, unsigned int i);

#endif /* SKUAD_CTL_REQUESTS_H */
