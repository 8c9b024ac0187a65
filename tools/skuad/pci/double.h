/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A double of the device for the tests of pci/: an engine that polls when it is told to, and a
 * device that remembers what it was told. To be included once in a program.
 */
#ifndef SKUAD_PCI_DOUBLE_H
#define SKUAD_PCI_DOUBLE_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/engine.h"
#include "harness/work.h"
#include "nic/dev.h"

#define DOUBLE_MAX_FDS	64
#define DOUBLE_MAX_MEM	64

struct engine {
	struct engine_fd *efd[DOUBLE_MAX_FDS];
	struct engine_fd *resting;	/* one at most */
};

struct double_mem {
	uint64_t iova, size;	/* size 0: not used */
	uint8_t *host;
	bool writable;
};

struct skua_dev {
	char name[32];
	const struct skua_host_ops *ops;
	void *host;
	bool bus_master;
	bool flooded;
	bool persistent;
	unsigned int resets;
	unsigned int bar_writes, bar_reads;
	struct {
		unsigned int bar;
		uint64_t offset, value;
		size_t len;
	} last;				/* write */
	struct double_mem mem[DOUBLE_MAX_MEM];
};

int engine_fd_add(struct engine *engine, struct engine_fd *efd)
{
	unsigned int i;

	for (i = 0; i < DOUBLE_MAX_FDS; i++) {
		if (!engine->efd[i]) {
			engine->efd[i] = efd;
			return 0;
		}
	}
	return -ENOSPC;
}

void engine_fd_del(struct engine *engine, struct engine_fd *efd)
{
	unsigned int i;

	for (i = 0; i < DOUBLE_MAX_FDS; i++)
		if (engine->efd[i] == efd)
			engine->efd[i] = NULL;
	if (engine->resting == efd)
		engine->resting = NULL;
}

void engine_fd_rest(struct engine *engine, struct engine_fd *efd, uint64_t ns)
{
	(void)ns;
	engine->resting = efd;
}

struct engine *engine_create(bool manual_clock)
{
	(void)manual_clock;
	return calloc(1, sizeof(struct engine));
}

void engine_destroy(struct engine *engine)
{
	free(engine);
}

bool engine_step(struct engine *engine)
{
	uint64_t before = work_done();
	bool worked = false;
	unsigned int i;

	for (i = 0; i < DOUBLE_MAX_FDS; i++) {
		struct pollfd p = { .events = POLLIN };

		if (!engine->efd[i] || engine->efd[i] == engine->resting)
			continue;
		p.fd = engine->efd[i]->fd;
		if (poll(&p, 1, 0) == 1) {
			engine->efd[i]->ready(engine->efd[i]);
			worked = true;
		}
	}
	work_check(before);
	return worked;
}

struct skua_dev *skua_dev_create(struct engine *engine, const struct skua_dev_config *config,
				 const struct skua_host_ops *ops, void *host)
{
	struct skua_dev *dev = calloc(1, sizeof(*dev));

	(void)engine;
	snprintf(dev->name, sizeof(dev->name), "%s", config->name);
	dev->ops = ops;
	dev->host = host;
	return dev;
}

void skua_dev_destroy(struct skua_dev *dev)
{
	free(dev);
}

void skua_dev_bar_write(struct skua_dev *dev, unsigned int bar, uint64_t offset,
			const void *data, size_t len)
{
	dev->bar_writes++;
	dev->last.bar = bar;
	dev->last.offset = offset;
	dev->last.len = len;
	dev->last.value = 0;
	memcpy(&dev->last.value, data, len);
}

/* A register reads as its BAR and offset. */
void skua_dev_bar_read(struct skua_dev *dev, unsigned int bar, uint64_t offset, void *data,
		       size_t len)
{
	uint64_t v = (uint64_t)bar << 24 | offset;

	dev->bar_reads++;
	memcpy(data, &v, len);
}

void skua_dev_reset(struct skua_dev *dev)
{
	dev->resets++;
}

void skua_dev_set_bus_master(struct skua_dev *dev, bool on)
{
	dev->bus_master = on;
}

int skua_dev_mem_map(struct skua_dev *dev, uint64_t iova, uint64_t size, void *host,
		     bool writable)
{
	unsigned int i;

	for (i = 0; i < DOUBLE_MAX_MEM; i++) {
		if (!dev->mem[i].size) {
			dev->mem[i] = (struct double_mem){ iova, size, host, writable };
			return 0;
		}
	}
	return -ENOMEM;
}

int skua_dev_mem_unmap(struct skua_dev *dev, uint64_t iova, uint64_t size)
{
	unsigned int i;

	for (i = 0; i < DOUBLE_MAX_MEM; i++) {
		if (dev->mem[i].size == size && dev->mem[i].iova == iova) {
			dev->mem[i].size = 0;
			return 0;
		}
	}
	return -ENOENT;
}

void skua_dev_mem_unmap_all(struct skua_dev *dev)
{
	memset(dev->mem, 0, sizeof(dev->mem));
}

bool skua_dev_is_flooded(const struct skua_dev *dev)
{
	return dev->flooded;
}

bool skua_dev_is_persistent(const struct skua_dev *dev)
{
	return dev->persistent;
}

const char *skua_dev_name(const struct skua_dev *dev)
{
	return dev->name;
}

/* What the device finds at @iova, or NULL. */
static inline struct double_mem *double_mem_at(struct skua_dev *dev, uint64_t iova)
{
	unsigned int i;

	for (i = 0; i < DOUBLE_MAX_MEM; i++)
		if (dev->mem[i].size && iova - dev->mem[i].iova < dev->mem[i].size)
			return &dev->mem[i];
	return NULL;
}

#endif /* SKUAD_PCI_DOUBLE_H */
