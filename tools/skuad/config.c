// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Configuration. The option and the file have the same keys, in one table; a key that is
 * unknown, given twice or missing is an error, because a NIC that is not what was asked for
 * costs more time than a refusal.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES	1024

static bool fail(struct config_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct config_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return false;
}

static bool is_name(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.-");

	return len && len < CONFIG_NAME_MAX && !text[len];
}

static bool set_name(struct config_device *d, const char *value, struct config_error *err)
{
	if (!is_name(value))
		return fail(err, "bad name '%.40s': want 1 to %d letters, digits, '_', '.', '-'", value,
			    CONFIG_NAME_MAX - 1);
	strcpy(d->name, value);
	return true;
}

static bool set_socket(struct config_device *d, const char *value, struct config_error *err)
{
	if (strlen(value) >= CONFIG_PATH_MAX)
		return fail(err, "socket path longer than %d bytes: %.40s...", CONFIG_PATH_MAX - 1,
			    value);
	strcpy(d->socket, value);
	return true;
}

static bool set_link(struct config_device *d, const char *value, struct config_error *err)
{
	struct link_spec spec;
	char why[64];

	if (strlen(value) >= sizeof(d->link))
		return fail(err, "link longer than %zu bytes: %.40s...", sizeof(d->link) - 1, value);
	if (!link_parse(&spec, value, why, sizeof(why)))
		return fail(err, "bad link '%.80s': %s", value, why);
	strcpy(d->link, value);
	return true;
}

static bool set_mac(struct config_device *d, const char *value, struct config_error *err)
{
	static const uint8_t zero[6];
	bool good = strlen(value) == 17;

	for (int i = 0; good && i < 17; i++)
		good = i % 3 == 2 ? value[i] == ':' : isxdigit((unsigned char)value[i]);
	if (!good || sscanf(value, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", &d->mac[0], &d->mac[1],
			    &d->mac[2], &d->mac[3], &d->mac[4], &d->mac[5]) != 6)
		return fail(err, "bad mac '%.40s': want six bytes, as in 02:00:00:00:00:01", value);
	if (d->mac[0] & 1 || !memcmp(d->mac, zero, 6))
		return fail(err, "bad mac '%s': not a unicast address", value);
	d->has_mac = true;
	return true;
}

static bool set_switch(bool *on, const char *key, const char *value, struct config_error *err)
{
	*on = !strcmp(value, "on");
	return *on || !strcmp(value, "off") || fail(err, "bad %s '%.40s': want on or off", key, value);
}

static bool set_spoof(struct config_device *d, const char *value, struct config_error *err)
{
	return set_switch(&d->spoof, "spoof", value, err);
}

static bool set_persistent(struct config_device *d, const char *value, struct config_error *err)
{
	return set_switch(&d->persistent, "persistent", value, err);
}

static bool set_max_pages(struct config_device *d, const char *value, struct config_error *err)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = isdigit((unsigned char)*value) ? strtoul(value, &end, 10) : 0;
	if (!v || *end || errno || v > SKUA_DEV_MAX_PAGES)
		return fail(err, "bad max_pages '%.40s': want 1 to %d", value, SKUA_DEV_MAX_PAGES);
	d->max_pages = (uint32_t)v;
	return true;
}

static const struct key {
	const char *name;
	bool (*set)(struct config_device *d, const char *value, struct config_error *err);
} keys[] = {
	{ "name", set_name },
	{ "socket", set_socket },
	{ "link", set_link },
	{ "mac", set_mac },
	{ "spoof", set_spoof },
	{ "persistent", set_persistent },
	{ "max_pages", set_max_pages },
};

#define NUM_KEYS	(sizeof(keys) / sizeof(keys[0]))
#define KEY_NAME	0

/* Sets one key; @seen has a bit for each that was set before. */
static bool set_key(struct config_device *d, unsigned int *seen, const char *key,
		    const char *value, struct config_error *err)
{
	unsigned int k = 0;

	while (k < NUM_KEYS && strcmp(key, keys[k].name))
		k++;
	if (k == NUM_KEYS)
		return fail(err, "unknown key '%.40s': want name, socket, link, mac, spoof, persistent or max_pages", key);
	if (*seen & 1u << k)
		return fail(err, "%s is given twice", key);
	if (!*value)
		return fail(err, "%s has no value", key);
	*seen |= 1u << k;
	return keys[k].set(d, value, err);
}

/* A device is complete: are its keys? */
static bool check_device(const struct config_device *d, struct config_error *err)
{
	if (!d->name[0])
		return fail(err, "a device has no name");
	if (!d->socket[0])
		return fail(err, "device %s has no socket", d->name);
	if (!d->link[0])
		return fail(err, "device %s has no link", d->name);
	return true;
}

static struct config_device *new_device(struct config *config, struct config_error *err)
{
	struct config_device *d;

	if (config->n == CONFIG_MAX_DEVICES) {
		fail(err, "more than %d devices", CONFIG_MAX_DEVICES);
		return NULL;
	}
	d = &config->device[config->n++];
	memset(d, 0, sizeof(*d));
	return d;
}

bool config_add_option(struct config *config, const char *text, struct config_error *err)
{
	struct config_device *d = new_device(config, err);
	char buf[LINE_MAX_BYTES], *rest = buf, *item, *value;
	unsigned int seen = 0;

	if (!d)
		return false;
	if (strlen(text) >= sizeof(buf))
		return fail(err, "--device longer than %zu bytes", sizeof(buf) - 1);
	strcpy(buf, text);
	while ((item = strsep(&rest, ","))) {
		value = strchr(item, '=');
		if (!value)
			return fail(err, "--device: want KEY=VALUE,..., not '%.40s'", item);
		*value++ = '\0';
		if (!set_key(d, &seen, item, value, err))
			return false;
	}
	return check_device(d, err);
}

static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* One line of a file; @d and @seen are of the section that it stands in. */
static bool add_line(struct config *config, struct config_device **d, unsigned int *seen,
		     char *line, struct config_error *err)
{
	size_t len = strlen(line);
	char *value;

	if (*line == '[') {
		if (*d && !check_device(*d, err))
			return false;
		if (strncmp(line, "[device", 7) || !isspace((unsigned char)line[7]) ||
		    line[len - 1] != ']')
			return fail(err, "want [device NAME], not '%.40s'", line);
		line[len - 1] = '\0';
		*d = new_device(config, err);
		*seen = 1u << KEY_NAME;
		return *d && set_name(*d, trim(line + 7), err);
	}
	value = strchr(line, '=');
	if (!value)
		return fail(err, "want KEY = VALUE, not '%.40s'", line);
	if (!*d)
		return fail(err, "a key comes before the first [device NAME]");
	*value++ = '\0';
	return set_key(*d, seen, trim(line), trim(value), err);
}

static bool add_lines(struct config *config, FILE *f, unsigned int *number,
		      struct config_error *err)
{
	struct config_device *d = NULL;
	unsigned int seen = 0;
	char buf[LINE_MAX_BYTES], *line;

	for (*number = 1; fgets(buf, sizeof(buf), f); ++*number) {
		if (strlen(buf) == sizeof(buf) - 1)
			return fail(err, "line longer than %zu bytes", sizeof(buf) - 2);
		line = trim(buf);
		if (*line && *line != '#' && *line != ';' &&
		    !add_line(config, &d, &seen, line, err))
			return false;
	}
	if (ferror(f))
		return fail(err, "%s", strerror(errno));
	return !d || check_device(d, err);
}

bool config_add_file(struct config *config, const char *path, struct config_error *err)
{
	struct config_error cause;
	unsigned int line = 0;
	FILE *f = fopen(path, "re");
	bool good;

	if (!f)
		return fail(err, "%.100s: %s", path, strerror(errno));
	good = add_lines(config, f, &line, &cause);
	fclose(f);
	return good || fail(err, "%.100s:%u: %.140s", path, line, cause.text);
}

/* Local addresses, the same for the same name in every run. (FNV-1a) */
static void derive_mac(struct config_device *d)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (const char *c = d->name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
	d->mac[0] = 0x02;
	for (int i = 1; i < 6; i++)
		d->mac[i] = hash >> (8 * i);
}

static bool check_pair(const struct config_device *a, const struct config_device *b,
		       struct config_error *err)
{
	if (!strcmp(a->name, b->name))
		return fail(err, "two devices are named %s", a->name);
	if (!strcmp(a->socket, b->socket))
		return fail(err, "devices %s and %s have the same socket", a->name, b->name);
	if (!memcmp(a->mac, b->mac, 6))
		return fail(err, "devices %s and %s have the same mac", a->name, b->name);
	return true;
}

bool config_finish(struct config *config, struct config_error *err)
{
	if (!config->n)
		return fail(err, "no device: give --device or --config");
	for (unsigned int i = 0; i < config->n; i++) {
		if (!config->device[i].has_mac)
			derive_mac(&config->device[i]);
		for (unsigned int j = 0; j < i; j++) {
			if (!check_pair(&config->device[j], &config->device[i], err))
				return false;
		}
	}
	return true;
}
