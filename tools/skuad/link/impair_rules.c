// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rules of impairments, from text.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/impair.h"

#define REORDER_NS	100000		/* if not said otherwise */

static bool bad(char *err, size_t len, const char *what, const char *text)
{
	snprintf(err, len, "%s: '%.40s'", what, text);
	return false;
}

static bool number(const char *text, const char *units, const double *scale, double *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*value = strtod(text, &end);
	for (; *units; units += strlen(units) + 1, scale++) {
		if (!strcmp(end, units)) {
			*value *= *scale;
			return *value <= 1e15;
		}
	}
	return !*end && *value <= 1e15;
}

static bool parse_time(const char *text, uint64_t *ns)
{
	static const double scale[] = { 1, 1e3, 1e6, 1e9 };
	double v;

	/* Without a unit only nothing is clear. */
	if (!number(text, "ns\0us\0ms\0s\0", scale, &v) || (isdigit((unsigned char)text[strlen(text) - 1]) && v > 0))
		return false;
	*ns = (uint64_t)v;
	return true;
}

static bool parse_rate(const char *text, uint64_t *rate)
{
	static const double scale[] = { 1e3, 1e6, 1e9 };
	double v;

	if (!number(text, "K\0M\0G\0", scale, &v) || v < 1000)
		return false;
	*rate = (uint64_t)v;
	return true;
}

static bool parse_int(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*value = strtoull(text, &end, 0);
	return !*end && *value <= max;
}

static bool parse_when(const char *text, struct impair_rule *rule)
{
	static const double percent[] = { 1 };
	uint64_t n;
	double v;

	if (!strncmp(text, "every:", 6)) {
		if (!parse_int(text + 6, UINT32_MAX, &n) || !n)
			return false;
		rule->every = (uint32_t)n;
		return true;
	}
	if (!number(text, "%\0", percent, &v) || text[strlen(text) - 1] != '%' || v > 100)
		return false;
	rule->chance = (uint64_t)(v / 100 * 4294967296.0);
	return true;
}

static bool parse_item(struct impair_rule *rule, bool *acts, const char *key, const char *value)
{
	static const char *const whens[] = {
		[IMPAIR_DROP] = "drop", [IMPAIR_DUPLICATE] = "duplicate",
		[IMPAIR_CORRUPT] = "corrupt", [IMPAIR_ECN] = "ecn", [IMPAIR_REORDER] = "reorder",
	};
	bool delay = !strcmp(key, "delay"), rate = !strcmp(key, "rate");
	uint64_t n;

	for (unsigned int a = 0; a < sizeof(whens) / sizeof(whens[0]); a++) {
		if (strcmp(key, whens[a]))
			continue;
		rule->action = a;
		if (*acts || !parse_when(value, rule))
			return false;
		*acts = true;
		if (a == IMPAIR_REORDER && !rule->time)
			rule->time = REORDER_NS;
		return true;
	}
	if (delay || rate) {
		if (*acts)
			return false;
		*acts = true;
		rule->action = delay ? IMPAIR_DELAY : IMPAIR_RATE;
		rule->every = 1;
		return delay ? parse_time(value, &rule->time) : parse_rate(value, &rule->rate);
	}
	if (!strcmp(key, "jitter"))
		return parse_time(value, &rule->jitter) && rule->action == IMPAIR_DELAY;
	if (!strcmp(key, "over"))
		return parse_time(value, &rule->over) && rule->action == IMPAIR_ECN;
	if (!strcmp(key, "for"))
		return parse_time(value, &rule->time) && *acts && rule->action == IMPAIR_DROP;
	if (!strcmp(key, "by"))
		return parse_time(value, &rule->time) && rule->action == IMPAIR_REORDER;
	if (!strcmp(key, "dir")) {
		rule->dir[IMPAIR_OUT] = !strcmp(value, "out");
		rule->dir[IMPAIR_IN] = !strcmp(value, "in");
		return rule->dir[IMPAIR_OUT] || rule->dir[IMPAIR_IN];
	}
	if (!strcmp(key, "qp")) {
		rule->has_qp = parse_int(value, 0xffffff, &n);
		rule->qpn = (uint32_t)n;
		return rule->has_qp;
	}
	if (!strcmp(key, "opcode")) {
		rule->has_opcode = parse_int(value, 0xff, &n);
		rule->opcode = (uint8_t)n;
		return rule->has_opcode;
	}
	return false;
}

static bool parse_seed(struct impair_config *config, const char *text, char *err, size_t err_len)
{
	if (config->seeded)
		return bad(err, err_len, "a seed is given twice", text);
	config->seeded = parse_int(text + 5, UINT64_MAX, &config->seed);
	return config->seeded || bad(err, err_len, "not a seed", text);
}

bool impair_parse(struct impair_config *config, const char *text, char *err, size_t err_len)
{
	char buf[IMPAIR_TEXT], *rest = buf, *item, *value, *keys[IMPAIR_TEXT];
	struct impair_rule rule = { .dir = { true, true } };
	unsigned int num_keys = 0;
	bool acts = false;

	if (!strncmp(text, "seed=", 5))
		return parse_seed(config, text, err, err_len);
	if (config->n == IMPAIR_RULES)
		return bad(err, err_len, "too many rules", text);
	if (strlen(text) >= sizeof(buf))
		return bad(err, err_len, "a rule is too long", text);
	strcpy(buf, text);
	while ((item = strsep(&rest, ","))) {
		value = strchr(item, '=');
		if (value)
			*value++ = '\0';
		for (unsigned int i = 0; i < num_keys; i++)
			if (!strcmp(keys[i], item))
				return bad(err, err_len, "a key is given twice", text);
		keys[num_keys++] = item;
		if (!value || !parse_item(&rule, &acts, item, value))
			return bad(err, err_len, "bad rule", text);
	}
	if (!acts)
		return bad(err, err_len, "a rule has no action", text);
	strcpy(rule.text, text);
	config->rule[config->n++] = rule;
	return true;
}

/* Is there a rate rule for a direction of @rule? */
static bool has_line(const struct impair_config *config, const struct impair_rule *rule)
{
	for (unsigned int r = 0; r < config->n; r++) {
		const struct impair_rule *line = &config->rule[r];

		if (line->action == IMPAIR_RATE && ((line->dir[IMPAIR_OUT] && rule->dir[IMPAIR_OUT]) ||
						    (line->dir[IMPAIR_IN] && rule->dir[IMPAIR_IN])))
			return true;
	}
	return false;
}

bool impair_check(const struct impair_config *config, char *err, size_t err_len)
{
	if (config->seeded && !config->n) {
		snprintf(err, err_len, "a seed needs a rule");
		return false;
	}
	for (unsigned int r = 0; r < config->n; r++)
		if (config->rule[r].over && !has_line(config, &config->rule[r]))
			return bad(err, err_len, "over needs a rate rule of its direction", config->rule[r].text);
	return true;
}
