/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For the tests of ctl/: doubles of engine and core, two devices with made-up facts, and a
 * thread that serves the control socket. Included once by each test program.
 */
#ifndef SKUAD_CTL_TEST_DOUBLE_H
#define SKUAD_CTL_TEST_DOUBLE_H

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/engine.h"
#include "ctl/server.h"
#include "link/capture.h"
#include "link/impair.h"
#include "nic/control.h"
#include "skua/regs.h"

struct skua_dev {
	const char *name;
	uint8_t mac;
	unsigned int nqps;
	_Atomic bool link_up;
	struct capture *_Atomic capture;
};

static struct skua_dev devs[2] = {
	{ .name = "skua0", .mac = 1, .nqps = 2, .link_up = true },
	{ .name = "skua1", .mac = 2, .nqps = 1, .link_up = true },
};

static const struct ctl_device ctl_devices[2] = {
	{ "skua0", NULL, &devs[0] },
	{ "skua1", NULL, &devs[1] },
};

void engine_call(struct engine *engine, void (*fn)(void *arg), void *arg)
{
	(void)engine;
	fn(arg);
}

void skua_dev_get_info(const struct skua_dev *dev, struct skua_dev_info *info)
{
	*info = (struct skua_dev_info){
		.name = dev->name, .link = "wire:a",
		.status = SKUA_STATUS_READY | SKUA_STATUS_ENABLED, .health = SKUA_HEALTH_OK,
		.features = 0xf, .mac = { 0x52, 0x54, 0, 0, 0, dev->mac },
		.link_up = dev->link_up, .port_flags = SKUA_PORT_F_ENABLE | SKUA_PORT_F_ROCE,
		.mtu = 1500, .eqs = 3, .pds = 4, .cqs = 5, .qps = dev->nqps, .mrs = 7,
	};
}

void skua_dev_get_stats(const struct skua_dev *dev, uint64_t *values)
{
	uint64_t n = 100 * dev->mac;

#define STAT_VALUE(name) *values++ = n++;
	SKUA_STATS(STAT_VALUE)
#undef STAT_VALUE
}

bool skua_dev_for_each_qp(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn,
			  void *arg)
{
	for (uint32_t i = 0; i < dev->nqps; i++) {
		struct skua_qp_info qp = {
			.qpn = 0x1000 * dev->mac + i, .dest_qpn = 77, .type = SKUA_QPT_RC,
			.state = SKUA_QPS_RTS, .sq_psn = 10, .una_psn = 9, .rq_psn = 8,
			.retries = 1, .rnr_retries = 2, .waiting = 3, .path_mtu = 1024,
			.pdn = 4, .scqn = 5, .rcqn = 6,
		};

		fn(&qp, arg);
	}
	(void)walk;
	return false;
}

bool skua_dev_for_each_cq(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn,
			  void *arg)
{
	struct skua_cq_info cq = {
		.cqn = 5, .eqn = 2, .size = 256, .pi = 1000, .ci = 990, .queues = 2,
		.error = dev->mac == 2,
	};

	(void)walk;
	fn(&cq, arg);
	return false;
}

bool skua_dev_for_each_mr(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn,
			  void *arg)
{
	struct skua_mr_info mr = {
		.key = 0x101, .pdn = 4, .type = SKUA_MR_REGULAR, .valid = true,
		.access = SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_READ, .iova = 4096,
		.length = 5000, .pages = 2, .page_size = 4096,
	};

	(void)dev;
	fn(&mr, arg);
	mr = (struct skua_mr_info){ .key = 0x202, .pdn = 4, .type = SKUA_MR_PHYS, .valid = true,
				    .access = SKUA_ACCESS_MASK };
	(void)walk;
	fn(&mr, arg);
	return false;
}

struct capture *skua_dev_set_capture(struct skua_dev *dev, struct capture *cap)
{
	return atomic_exchange(&dev->capture, cap);
}

static struct impair_config double_impair;

bool skua_dev_set_impair(struct skua_dev *dev, const struct impair_config *config)
{
	(void)dev;
	double_impair = *config;
	return true;
}

const struct impair_config *skua_dev_get_impair(const struct skua_dev *dev)
{
	(void)dev;
	return double_impair.n ? &double_impair : NULL;
}

void skua_dev_set_link(struct skua_dev *dev, bool up)
{
	dev->link_up = up;
}

/* The last one that was asked for. */
static struct {
	struct skua_dev *_Atomic dev;
	_Atomic enum skua_fault fault;
	_Atomic uint32_t number;
	_Atomic int result;	/* to give */
} injected;

int skua_dev_inject(struct skua_dev *dev, enum skua_fault fault, uint32_t number)
{
	injected.dev = dev;
	injected.fault = fault;
	injected.number = number;
	return injected.result;
}

static char dir[32], path[64];
static struct ctl *ctl;
static pthread_t server_thread;
static _Atomic bool server_stop;

static void *serve(void *arg)
{
	struct pollfd pfd = { .fd = ctl_fd(ctl), .events = POLLIN };

	(void)arg;
	while (!server_stop) {
		if (poll(&pfd, 1, 20) > 0)
			ctl_serve(ctl);
	}
	return NULL;
}

static inline int start_server(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/skuad-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/control", dir);
	devs[0].link_up = devs[1].link_up = true;
	ctl = ctl_create(path, ctl_devices, 2);
	if (!ctl)
		return -1;
	server_stop = false;
	return pthread_create(&server_thread, NULL, serve, NULL);
}

static inline int stop_server(void **state)
{
	(void)state;
	server_stop = true;
	pthread_join(server_thread, NULL);
	ctl_destroy(ctl);
	return access(path, F_OK) == 0 || rmdir(dir);
}

/* Until the device is, or is no more, captured. */
static inline bool capture_becomes(struct skua_dev *dev, bool captured)
{
	for (int i = 0; i < 500; i++) {
		if (!dev->capture == !captured)
			return true;
		usleep(10000);
	}
	return false;
}

#endif /* SKUAD_CTL_TEST_DOUBLE_H */
