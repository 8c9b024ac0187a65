// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What each request does. A request is a row of a table: its name, the members that it may
 * have, and its function. Facts are gathered on the thread of the device's engine, quickly;
 * JSON is made of them here.
 */
#include "ctl/requests.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "base/engine.h"
#include "base/log.h"
#include "ctl/server.h"
#include "link/capture.h"
#include "link/impair.h"
#include "nic/control.h"
#include "skua/regs.h"

#define MAX_DEPTH	4	/* of nested JSON */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* One request as it is carried out. */
struct request {
	struct ctl_state *state;
	const void *client;
	struct json_object *in, *out;
	int *fd;
	unsigned int first, last;	/* devices that are meant: first to last - 1 */
};

/* A refusal shows a part of the request's text, which may end within a character. Such a character is left out, because
 * the answer would not be valid JSON. */
static void drop_cut_characters(char *text)
{
	const char *from = text;

	while (*from) {
		uint8_t head = (uint8_t)*from;
		unsigned int len = head < 0x80 ? 1 : head < 0xe0 ? 2 : head < 0xf0 ? 3 : 4, n = 1;

		while (n < len && ((uint8_t)from[n] & 0xc0) == 0x80)
			n++;
		if (n == len) {
			memmove(text, from, n);
			text += n;
		}
		from += n;
	}
	*text = '\0';
}

/* The answer is a refusal. */
static void refuse(struct json_object *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void refuse(struct json_object *out, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	drop_cut_characters(text);
	json_object_object_add(out, "ok", json_object_new_boolean(false));
	json_object_object_add(out, "error", json_object_new_string(text));
}

static void add_number(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_uint64(value));
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

static void add_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

/* The name of bit or value @v, or its number. */
static const char *name_of(const char *const *names, size_t n, unsigned int v, char *buf,
			   size_t len)
{
	if (v < n && names[v])
		return names[v];
	snprintf(buf, len, "%u", v);
	return buf;
}

/* devices */

struct info_call {
	struct skua_dev *dev;
	struct skua_dev_info info;
};

static void get_info(void *arg)
{
	struct info_call *c = arg;

	skua_dev_get_info(c->dev, &c->info);
}

static const char *state_name(const struct skua_dev_info *info)
{
	uint32_t status = info->status;

	if (info->gone)
		return "gone";
	if (status & SKUA_STATUS_FATAL)
		return "fatal";
	if (status & SKUA_STATUS_ENABLED)
		return "enabled";
	return status & SKUA_STATUS_READY ? "ready" : "reset";
}

static struct json_object *device_object(const struct skua_dev_info *info, bool capture)
{
	static const char *const health[] = {
		[SKUA_HEALTH_OK] = "ok", [SKUA_HEALTH_FEATURES] = "features",
		[SKUA_HEALTH_CMD_SIZE] = "cmd-size", [SKUA_HEALTH_CMD_ADDRESS] = "cmd-address",
		[SKUA_HEALTH_CMD_OVERRUN] = "cmd-overrun",
		[SKUA_HEALTH_EQ_ADDRESS] = "eq-address", [SKUA_HEALTH_INTERNAL] = "internal",
		[SKUA_HEALTH_INJECTED] = "injected",
	};
	struct json_object *o = json_object_new_object();
	char mac[18], number[12];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", info->mac[0], info->mac[1],
		 info->mac[2], info->mac[3], info->mac[4], info->mac[5]);
	add_string(o, "name", info->name);
	add_string(o, "mac", mac);
	add_bool(o, "spoof", info->spoof);
	add_bool(o, "persistent", info->persistent);
	add_string(o, "link", info->link);
	add_bool(o, "link_up", info->link_up);
	if (info->outside) {
		add_bool(o, "link_peer", info->link_peer);
		add_number(o, "link_tx_lost", info->link_tx_lost);
		add_number(o, "link_rx_lost", info->link_rx_lost);
	}
	add_string(o, "state", state_name(info));
	add_string(o, "health", name_of(health, ARRAY_SIZE(health), info->health, number,
					sizeof(number)));
	add_number(o, "features", info->features);
	add_bool(o, "port_enabled", info->port_flags & SKUA_PORT_F_ENABLE);
	add_bool(o, "roce", info->port_flags & SKUA_PORT_F_ROCE);
	add_number(o, "mtu", info->mtu);
	add_number(o, "eqs", info->eqs);
	add_number(o, "pds", info->pds);
	add_number(o, "cqs", info->cqs);
	add_number(o, "qps", info->qps);
	add_number(o, "mrs", info->mrs);
	add_bool(o, "capture", capture);
	return o;
}

static void do_devices(struct request *r)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = r->first; i < r->last; i++) {
		const struct ctl_device *d = &r->state->devices[i];
		struct info_call c = { .dev = d->dev };

		engine_call(d->engine, get_info, &c);
		json_object_array_add(list,
				      device_object(&c.info, r->state->captures[i].cap));
	}
	json_object_object_add(r->out, "devices", list);
}

/* qps, cqs, mrs */

/* One kind of object: copied on the engine's thread, told here. */
struct kind {
	const char *name;	/* of the list in the answer */
	size_t size;		/* of its struct skua_*_info */
	bool (*for_each)(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn, void *arg);
	void (*tell)(struct json_object *o, const void *info);
};

/* What a list has of one device. */
struct list_call {
	const struct kind *kind;
	const char *name;
	struct skua_dev *dev;
	char *info;
	size_t n, room;
	bool more, failed;
	struct skua_walk walk;
};

static void add_info(const void *info, void *arg)
{
	struct list_call *c = arg;

	if (c->walk.anew)
		c->n = 0;
	c->walk.anew = false;
	if (c->n == c->room) {
		size_t room = c->room ? 2 * c->room : 64;
		void *p = realloc(c->info, room * c->kind->size);

		if (!p) {
			c->failed = true;
			return;
		}
		c->info = p;
		c->room = room;
	}
	memcpy(c->info + c->n++ * c->kind->size, info, c->kind->size);
}

static void get_list(void *arg)
{
	struct list_call *c = arg;

	c->more = c->kind->for_each(c->dev, &c->walk, add_info, c);
}

struct list {
	unsigned int n;
	struct list_call of[];		/* devices */
};

static bool write_one(struct printbuf *pb, const struct list_call *c, size_t k, int flags)
{
	struct json_object *o = json_object_new_object();
	const char *text;
	size_t len;
	bool ok;

	add_string(o, "device", c->name);
	c->kind->tell(o, c->info + k * c->kind->size);
	text = json_object_to_json_string_length(o, flags, &len);
	ok = text && printbuf_memappend(pb, text, (int)len) >= 0;
	json_object_put(o);
	return ok;
}

/*
 * The serializer of a list: one object at a time. A guest may have more than a million MRs, whose objects take ten
 * times as much memory as their text.
 */
static int write_list(struct json_object *o, struct printbuf *pb, int level, int flags)
{
	const struct list *list = json_object_get_userdata(o);
	bool ok = printbuf_memappend(pb, "[", 1) >= 0, first = true;

	(void)level;
	for (unsigned int i = 0; i < list->n; i++) {
		for (size_t k = 0; ok && k < list->of[i].n; k++) {
			ok = (first || printbuf_memappend(pb, ",", 1) >= 0) && write_one(pb, &list->of[i], k, flags);
			first = false;
		}
	}
	return ok ? printbuf_memappend(pb, "]", 1) : -1;
}

static void free_list(struct json_object *o, void *arg)
{
	struct list *list = arg;

	(void)o;
	for (unsigned int i = 0; i < list->n; i++)
		free(list->of[i].info);
	free(list);
}

static void do_list(struct request *r, const struct kind *kind)
{
	struct list *list = calloc(1, sizeof(*list) + (r->last - r->first) * sizeof(list->of[0]));
	struct json_object *out;
	bool failed = !list;

	for (unsigned int i = r->first; list && i < r->last; i++) {
		const struct ctl_device *d = &r->state->devices[i];
		struct list_call *c = &list->of[list->n++];

		*c = (struct list_call){ .kind = kind, .name = d->name, .dev = d->dev };
		do
			engine_call(d->engine, get_list, c);
		while (c->more);
		failed |= c->failed;
	}
	out = json_object_new_array();
	if (list)
		json_object_set_serializer(out, write_list, list, free_list);
	json_object_object_add(r->out, kind->name, out);
	if (failed)
		refuse(r->out, "out of memory");
}

static void add_name(struct json_object *o, const char *key, const char *const *names, size_t n,
		     unsigned int v)
{
	char number[12];

	add_string(o, key, name_of(names, n, v, number, sizeof(number)));
}

static void tell_qp(struct json_object *o, const void *info)
{
	static const char *const types[] = {
		[SKUA_QPT_RC] = "RC", [SKUA_QPT_UC] = "UC", [SKUA_QPT_UD] = "UD",
		[SKUA_QPT_GSI] = "GSI", [SKUA_QPT_ETH] = "ETH",
		[SKUA_QPT_XRC_INI] = "XRC_INI", [SKUA_QPT_XRC_TGT] = "XRC_TGT",
	};
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	const struct skua_qp_info *qp = info;

	add_number(o, "qpn", qp->qpn);
	add_name(o, "type", types, ARRAY_SIZE(types), qp->type);
	add_name(o, "state", states, ARRAY_SIZE(states), qp->state);
	add_number(o, "pdn", qp->pdn);
	add_number(o, "scqn", qp->scqn);
	add_number(o, "rcqn", qp->rcqn);
	if (qp->type == SKUA_QPT_XRC_TGT)
		add_number(o, "xrcdn", qp->xrcdn);
	if (qp->type == SKUA_QPT_ETH)
		return;
	add_number(o, "sq_psn", qp->sq_psn);
	add_number(o, "waiting", qp->waiting);
	if (qp->type == SKUA_QPT_UD || qp->type == SKUA_QPT_GSI) {
		add_number(o, "qkey", qp->qkey);
		return;
	}
	add_number(o, "dest_qpn", qp->dest_qpn);
	add_number(o, "rq_psn", qp->rq_psn);
	add_number(o, "path_mtu", qp->path_mtu);
	if (qp->rate)
		add_number(o, "rate", qp->rate);
	if (qp->type == SKUA_QPT_UC)
		return;
	add_number(o, "una_psn", qp->una_psn);
	add_number(o, "retries", qp->retries);
	add_number(o, "rnr_retries", qp->rnr_retries);
}

static void tell_cq(struct json_object *o, const void *info)
{
	const struct skua_cq_info *cq = info;

	add_number(o, "cqn", cq->cqn);
	add_string(o, "state", cq->error ? "error" : "ok");
	add_number(o, "eqn", cq->eqn);
	add_number(o, "size", cq->size);
	add_number(o, "pi", cq->pi);
	add_number(o, "ci", cq->ci);
	add_number(o, "queues", cq->queues);
}

static void tell_mr(struct json_object *o, const void *info)
{
	static const char *const types[] = {
		[SKUA_MR_REGULAR] = "regular", [SKUA_MR_PHYS] = "phys", [SKUA_MR_FAST] = "fast", [SKUA_MR_DM] = "dm",
	};
	static const char *const windows[] = { [SKUA_MW_TYPE_1] = "window-1", [SKUA_MW_TYPE_2] = "window-2" };
	const struct skua_mr_info *mr = info;
	char rights[7];

	/* As in "local write, remote write, remote read, atomic, bind, flush". */
	snprintf(rights, sizeof(rights), "%c%c%c%c%c%c",
		 mr->access & SKUA_ACCESS_LOCAL_WRITE ? 'l' : '-',
		 mr->access & SKUA_ACCESS_REMOTE_WRITE ? 'w' : '-',
		 mr->access & SKUA_ACCESS_REMOTE_READ ? 'r' : '-',
		 mr->access & SKUA_ACCESS_REMOTE_ATOMIC ? 'a' : '-',
		 mr->access & SKUA_ACCESS_MW_BIND ? 'b' : '-',
		 mr->access & SKUA_ACCESS_FLUSH_GLOBAL ? 'f' : '-');
	add_number(o, "key", mr->key);
	if (mr->window)
		add_name(o, "type", windows, ARRAY_SIZE(windows), mr->window);
	else
		add_name(o, "type", types, ARRAY_SIZE(types), mr->type);
	add_bool(o, "valid", mr->valid);
	add_number(o, "pdn", mr->pdn);
	add_string(o, "access", rights);
	if (mr->type == SKUA_MR_PHYS)
		return;
	add_number(o, "iova", mr->iova);
	add_number(o, "length", mr->length);
	add_number(o, "pages", mr->pages);
	add_number(o, "page_size", mr->page_size);
}

#define DO_LIST(what)								\
static void do_##what##s(struct request *r)					\
{										\
	static const struct kind kind = {					\
		#what "s", sizeof(struct skua_##what##_info),			\
		skua_dev_for_each_##what, tell_##what				\
	};									\
										\
	do_list(r, &kind);							\
}
DO_LIST(qp)
DO_LIST(cq)
DO_LIST(mr)
#undef DO_LIST

/* counters */

static const char *const stat_names[] = {
#define STAT_NAME(name) #name,
	SKUA_STATS(STAT_NAME)
#undef STAT_NAME
};

struct stats_call {
	struct skua_dev *dev;
	uint64_t values[ARRAY_SIZE(stat_names)];
};

static void get_stats(void *arg)
{
	struct stats_call *c = arg;

	skua_dev_get_stats(c->dev, c->values);
}

static void do_counters(struct request *r)
{
	struct json_object *all = json_object_new_object();
	struct timespec now;

	for (unsigned int i = r->first; i < r->last; i++) {
		const struct ctl_device *d = &r->state->devices[i];
		struct json_object *o = json_object_new_object();
		struct stats_call c = { .dev = d->dev };

		engine_call(d->engine, get_stats, &c);
		for (size_t s = 0; s < ARRAY_SIZE(stat_names); s++)
			add_number(o, stat_names[s], c.values[s]);
		json_object_object_add(all, d->name, o);
	}
	json_object_object_add(r->out, "counters", all);
	clock_gettime(CLOCK_MONOTONIC, &now);
	add_number(r->out, "time_ns", now.tv_sec * 1000000000ull + now.tv_nsec);
}

/* link */

struct link_call {
	struct skua_dev *dev;
	bool up;
};

static void set_link(void *arg)
{
	struct link_call *c = arg;

	skua_dev_set_link(c->dev, c->up);
}

static void do_link(struct request *r)
{
	const struct ctl_device *d = &r->state->devices[r->first];
	struct link_call c = { .dev = d->dev };
	struct json_object *up;

	if (!json_object_object_get_ex(r->in, "up", &up) ||
	    !json_object_is_type(up, json_type_boolean)) {
		refuse(r->out, "link: 'up' must be true or false");
		return;
	}
	c.up = json_object_get_boolean(up);
	engine_call(d->engine, set_link, &c);
	log_info(d->name, "link %s, set by request", c.up ? "up" : "down");
}

/* inject */

/* What the number of a fault is. */
enum fault_number { NUMBER_NONE, NUMBER_COUNT, NUMBER_QP, NUMBER_CQ };

static const struct fault {
	const char *name;
	enum skua_fault fault;
	enum fault_number number;
} faults[] = {
	{ "none",		SKUA_FAULT_NONE,		NUMBER_NONE },
	{ "command-timeout",	SKUA_FAULT_COMMAND_TIMEOUT,	NUMBER_COUNT },
	{ "command-error",	SKUA_FAULT_COMMAND_ERROR,	NUMBER_COUNT },
	{ "read-timeout",	SKUA_FAULT_READ_TIMEOUT,	NUMBER_COUNT },
	{ "fatal",		SKUA_FAULT_FATAL,		NUMBER_NONE },
	{ "gone",		SKUA_FAULT_GONE,		NUMBER_NONE },
	{ "cq-error",		SKUA_FAULT_CQ_ERROR,		NUMBER_CQ },
	{ "qp-fatal",		SKUA_FAULT_QP_FATAL,		NUMBER_QP },
	{ "qp-request-error",	SKUA_FAULT_QP_REQUEST_ERROR,	NUMBER_QP },
	{ "qp-access-error",	SKUA_FAULT_QP_ACCESS_ERROR,	NUMBER_QP },
	{ "eq-overflow",	SKUA_FAULT_EQ_OVERFLOW,		NUMBER_NONE },
	{ "stray-completion",	SKUA_FAULT_STRAY_COMPLETION,	NUMBER_CQ },
	{ "stray-receive",	SKUA_FAULT_STRAY_RECEIVE,	NUMBER_QP },
	{ "stray-events",	SKUA_FAULT_STRAY_EVENTS,	NUMBER_NONE },
	{ "other-signature",	SKUA_FAULT_OTHER_SIGNATURE,	NUMBER_NONE },
	{ "other-version",	SKUA_FAULT_OTHER_VERSION,	NUMBER_NONE },
	{ "new-features",	SKUA_FAULT_NEW_FEATURES,	NUMBER_NONE },
	{ "no-limits",		SKUA_FAULT_NO_LIMITS,		NUMBER_NONE },
	{ "no-mrs",		SKUA_FAULT_NO_MRS,		NUMBER_NONE },
	{ "go-back-n",		SKUA_FAULT_GO_BACK_N,		NUMBER_NONE },
};

struct inject_call {
	struct skua_dev *dev;
	enum skua_fault fault;
	uint32_t number;
	int result;
};

static void inject(void *arg)
{
	struct inject_call *c = arg;

	c->result = skua_dev_inject(c->dev, c->fault, c->number);
}

static const struct fault *find_fault(struct request *r)
{
	struct json_object *name = NULL;
	char all[300] = "";

	if (json_object_object_get_ex(r->in, "fault", &name) &&
	    !json_object_is_type(name, json_type_string))
		name = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		if (name && !strcmp(faults[i].name, json_object_get_string(name)))
			return &faults[i];
		strcat(strcat(all, i ? ", " : ""), faults[i].name);
	}
	if (name)
		refuse(r->out, "no such fault: '%.40s'; the faults are %s", json_object_get_string(name),
		       all);
	else
		refuse(r->out, "inject: 'fault' must be one of %s", all);
	return NULL;
}

/* The number of the fault, which has to be there exactly if it means anything; one fault counts
 * as one. */
static bool find_number(struct request *r, const struct fault *f, uint32_t *number)
{
	struct json_object *v;

	*number = 1;
	if (!json_object_object_get_ex(r->in, "number", &v)) {
		if (f->number <= NUMBER_COUNT)
			return true;
		refuse(r->out, "inject: %s needs the number of a %s", f->name,
		       f->number == NUMBER_QP ? "QP" : "CQ");
		return false;
	}
	if (f->number == NUMBER_NONE) {
		refuse(r->out, "inject: %s takes no number", f->name);
		return false;
	}
	if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0 ||
	    json_object_get_int64(v) > UINT32_MAX) {
		refuse(r->out, "inject: 'number' must be an integer from 0 to 2^32 - 1");
		return false;
	}
	*number = (uint32_t)json_object_get_int64(v);
	return true;
}

static void do_inject(struct request *r)
{
	const struct ctl_device *d = &r->state->devices[r->first];
	const struct fault *f = find_fault(r);
	struct inject_call c = { .dev = d->dev };

	if (!f || !find_number(r, f, &c.number))
		return;
	c.fault = f->fault;
	engine_call(d->engine, inject, &c);
	if (c.result == -ENOENT)
		refuse(r->out, "%s has no %s %u", d->name, f->number == NUMBER_QP ? "QP" : "CQ",
		       c.number);
	else if (c.result)
		refuse(r->out, "%s: %s needs a device that a driver has enabled", d->name, f->name);
	else
		log_info(d->name, "fault %s, injected by request", f->name);
}

/* impair */

struct impair_call {
	struct skua_dev *dev;
	bool set, failed;
	struct impair_config config;
};

static void impair(void *arg)
{
	const struct impair_config *now;
	struct impair_call *c = arg;

	c->failed = c->set && !skua_dev_set_impair(c->dev, &c->config);
	now = skua_dev_get_impair(c->dev);
	c->config = now ? *now : (struct impair_config){ 0 };
}

static bool parse_rules(struct request *r, struct json_object *rules, struct impair_config *config)
{
	char err[100];

	if (!json_object_is_type(rules, json_type_array)) {
		refuse(r->out, "impair: 'rules' must be an array of strings");
		return false;
	}
	for (size_t i = 0; i < json_object_array_length(rules); i++) {
		struct json_object *rule = json_object_array_get_idx(rules, i);

		if (!json_object_is_type(rule, json_type_string)) {
			refuse(r->out, "impair: 'rules' must be an array of strings");
			return false;
		}
		if (!impair_parse(config, json_object_get_string(rule), err, sizeof(err))) {
			refuse(r->out, "impair: %s", err);
			return false;
		}
	}
	if (!impair_check(config, err, sizeof(err))) {
		refuse(r->out, "impair: %s", err);
		return false;
	}
	return true;
}

static void do_impair(struct request *r)
{
	const struct ctl_device *d = &r->state->devices[r->first];
	struct impair_call c = { .dev = d->dev };
	struct json_object *rules, *list;

	c.set = json_object_object_get_ex(r->in, "rules", &rules);
	if (c.set && !parse_rules(r, rules, &c.config))
		return;
	engine_call(d->engine, impair, &c);
	if (c.failed) {
		refuse(r->out, "out of memory");
		return;
	}
	list = json_object_new_array();
	for (unsigned int i = 0; i < c.config.n; i++) {
		struct json_object *o = json_object_new_object();

		add_string(o, "rule", c.config.rule[i].text);
		add_number(o, "seen", c.config.rule[i].matched);
		add_number(o, "done", c.config.rule[i].acted);
		json_object_array_add(list, o);
	}
	json_object_object_add(r->out, "rules", list);
	add_number(r->out, "overflow", c.config.overflow);
	if (c.set)
		log_info(d->name, "%u impairment rules, set by request", c.config.n);
}

/* capture, capture-stop */

struct capture_call {
	struct skua_dev *dev;
	struct capture *cap;
};

static void set_capture(void *arg)
{
	struct capture_call *c = arg;

	skua_dev_set_capture(c->dev, c->cap);
}

static void do_capture(struct request *r)
{
	const struct ctl_device *d = &r->state->devices[r->first];
	struct ctl_capture *slot = &r->state->captures[r->first];
	struct capture_call c = { .dev = d->dev };

	if (*r->fd < 0) {
		refuse(r->out, "capture: no descriptor came with the request");
		return;
	}
	if (slot->cap) {
		refuse(r->out, "%s is being captured already", d->name);
		return;
	}
	c.cap = capture_open(*r->fd, d->name);
	if (!c.cap) {
		refuse(r->out, "capture of %s: %m", d->name);
		return;
	}
	*r->fd = -1;
	slot->cap = c.cap;
	slot->client = r->client;
	engine_call(d->engine, set_capture, &c);
}

void ctl_end_capture(struct ctl_state *state, unsigned int i, uint64_t *written, uint64_t *lost)
{
	struct capture_call c = { .dev = state->devices[i].dev };
	struct ctl_capture *slot = &state->captures[i];

	*written = *lost = 0;
	if (!slot->cap)
		return;
	/* Only when no engine can write any more may it be closed. */
	engine_call(state->devices[i].engine, set_capture, &c);
	capture_close(slot->cap, written, lost);
	slot->cap = NULL;
	slot->client = NULL;
}

static void do_capture_stop(struct request *r)
{
	const struct ctl_capture *slot = &r->state->captures[r->first];
	uint64_t written, lost;

	if (!slot->cap || slot->client != r->client) {
		refuse(r->out, "%s is not being captured by this client",
		       r->state->devices[r->first].name);
		return;
	}
	ctl_end_capture(r->state, r->first, &written, &lost);
	add_number(r->out, "written", written);
	add_number(r->out, "lost", lost);
}

struct json_object *ctl_capture_news(struct ctl_state *state, unsigned int i)
{
	int error = capture_error(state->captures[i].cap);
	struct json_object *o = json_object_new_object();
	uint64_t written, lost;

	ctl_end_capture(state, i, &written, &lost);
	add_string(o, "event", "capture-ended");
	add_string(o, "device", state->devices[i].name);
	add_string(o, "error", strerror(error));
	add_number(o, "written", written);
	add_number(o, "lost", lost);
	return o;
}

/* The table. */

enum device_member { DEVICE_NO, DEVICE_MAY, DEVICE_MUST };

static const struct row {
	const char *cmd;
	enum device_member device;
	const char *members[2];		/* besides "cmd", "id" and "device" */
	void (*run)(struct request *r);
} rows[] = {
	{ "devices",	  DEVICE_NO,   { NULL }, do_devices },
	{ "qps",	  DEVICE_MAY,  { NULL }, do_qps },
	{ "cqs",	  DEVICE_MAY,  { NULL }, do_cqs },
	{ "mrs",	  DEVICE_MAY,  { NULL }, do_mrs },
	{ "counters",	  DEVICE_MAY,  { NULL }, do_counters },
	{ "link",	  DEVICE_MUST, { "up" }, do_link },
	{ "inject",	  DEVICE_MUST, { "fault", "number" }, do_inject },
	{ "impair",	  DEVICE_MUST, { "rules" }, do_impair },
	{ "capture",	  DEVICE_MUST, { NULL }, do_capture },
	{ "capture-stop", DEVICE_MUST, { NULL }, do_capture_stop },
};

static const struct row *find_row(struct request *r)
{
	struct json_object *cmd;
	const char *name;

	if (!json_object_object_get_ex(r->in, "cmd", &cmd) ||
	    !json_object_is_type(cmd, json_type_string)) {
		refuse(r->out, "a request needs a string 'cmd'");
		return NULL;
	}
	name = json_object_get_string(cmd);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!strcmp(rows[i].cmd, name))
			return &rows[i];
	}
	refuse(r->out, "no such command: '%.40s'", name);
	return NULL;
}

static bool may_have(const struct row *row, const char *key)
{
	if (!strcmp(key, "cmd") || !strcmp(key, "id"))
		return true;
	if (!strcmp(key, "device"))
		return row->device != DEVICE_NO;
	for (size_t i = 0; i < ARRAY_SIZE(row->members); i++) {
		if (row->members[i] && !strcmp(row->members[i], key))
			return true;
	}
	return false;
}

static bool check_members(struct request *r, const struct row *row)
{
	json_object_object_foreach(r->in, key, value) {
		(void)value;
		if (!may_have(row, key)) {
			refuse(r->out, "%s: unknown member '%.40s'", row->cmd, key);
			return false;
		}
	}
	return true;
}

/* Which devices are meant. */
static bool find_device(struct request *r, const struct row *row)
{
	struct json_object *device;
	const char *name;

	r->first = 0;
	r->last = r->state->n;
	if (!json_object_object_get_ex(r->in, "device", &device)) {
		if (row->device == DEVICE_MUST)
			refuse(r->out, "%s: 'device' is missing", row->cmd);
		return row->device != DEVICE_MUST;
	}
	if (!json_object_is_type(device, json_type_string)) {
		refuse(r->out, "%s: 'device' must be a string", row->cmd);
		return false;
	}
	name = json_object_get_string(device);
	for (unsigned int i = 0; i < r->state->n; i++) {
		if (!strcmp(r->state->devices[i].name, name)) {
			r->first = i;
			r->last = i + 1;
			return true;
		}
	}
	refuse(r->out, "no such device: '%.40s'", name);
	return false;
}

static struct json_object *parse(const char *line, int len, struct json_object *out)
{
	struct json_tokener *tok = json_tokener_new_ex(MAX_DEPTH);
	struct json_object *in;

	if (!tok) {
		refuse(out, "out of memory");
		return NULL;
	}
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	in = json_tokener_parse_ex(tok, line, len);
	if (json_tokener_get_error(tok) == json_tokener_continue)
		refuse(out, "bad JSON: not a whole value");
	else if (json_tokener_get_error(tok) != json_tokener_success)
		refuse(out, "bad JSON: %s",
		       json_tokener_error_desc(json_tokener_get_error(tok)));
	else if (json_tokener_get_parse_end(tok) != (size_t)len)
		refuse(out, "bad JSON: a line must be one value");
	else if (!json_object_is_type(in, json_type_object))
		refuse(out, "a request is a JSON object");
	if (json_object_object_get_ex(out, "error", NULL)) {
		json_object_put(in);
		in = NULL;
	}
	json_tokener_free(tok);
	return in;
}

struct json_object *ctl_request(struct ctl_state *state, const void *client, const char *line,
				int len, int *fd)
{
	struct request r = { .state = state, .client = client, .fd = fd };
	struct json_object *id;
	const struct row *row;

	r.out = json_object_new_object();
	if (!r.out)
		return NULL;
	add_bool(r.out, "ok", true);
	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	r.in = parse(line, len, r.out);
	if (!r.in)
		return r.out;
	if (json_object_object_get_ex(r.in, "id", &id))
		json_object_object_add(r.out, "id", json_object_get(id));
	row = find_row(&r);
	if (row && check_members(&r, row) && find_device(&r, row))
		row->run(&r);
	json_object_put(r.in);
	return r.out;
}
