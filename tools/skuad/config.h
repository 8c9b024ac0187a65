/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What skuad is told to be: devices, from --device options and from a file.
 */
#ifndef SKUAD_CONFIG_H
#define SKUAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/spec.h"
#include "nic/dev.h"

#define CONFIG_NAME_MAX		32	/* bytes of a device's name, NUL included */
#define CONFIG_PATH_MAX		108	/* of a socket's path, as sun_path */
#define CONFIG_MAX_DEVICES	256

struct config_device {
	char name[CONFIG_NAME_MAX];
	char socket[CONFIG_PATH_MAX];
	char link[LINK_TEXT_MAX];
	uint8_t mac[6];
	bool has_mac;
	bool spoof;			/* its host may send from other MACs */
	bool persistent;		/* its host's memory survives a loss of power */
	uint32_t max_pages;		/* 0: SKUA_DEV_MAX_PAGES */
};

struct config {
	unsigned int n;
	struct config_device device[CONFIG_MAX_DEVICES];
};

/* What is wrong, in one line. */
struct config_error {
	char text[256];
};

/* Adds the device of a --device option: "name=skua0,socket=PATH,link=wire:a[,mac=MAC]". */
bool config_add_option(struct config *config, const char *text, struct config_error *err);

/*
 * Adds the devices of a file: for each a line "[device NAME]", then lines "KEY = VALUE" with
 * the keys of the option. Lines that begin with '#' or ';', and empty ones, say nothing.
 */
bool config_add_file(struct config *config, const char *path, struct config_error *err);

/* Checks the whole, and gives a MAC to those that have none. */
bool config_finish(struct config *config, struct config_error *err);

#endif /* SKUAD_CONFIG_H */
