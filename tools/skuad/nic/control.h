/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What skuactl may ask of a device. All functions run on the thread
 * of the device's engine (ctl/ gets there by engine_call()).
 */
#ifndef SKUAD_NIC_CONTROL_H
#define SKUAD_NIC_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/inject.h"

struct skua_dev;
struct capture;
struct impair_config;

struct skua_dev_info {
	const char *name;
	const char *link;
	uint32_t status;	/* SKUA_STATUS_* */
	uint32_t health;	/* enum skua_health */
	uint64_t features;	/* accepted */
	uint8_t mac[6];
	bool spoof;		/* its host may use others */
	bool persistent;	/* host memory is */
	bool link_up;
	bool outside;		/* the link leaves this process; then: */
	bool link_peer;		/* there is somebody, as far as one can know */
	uint64_t link_tx_lost, link_rx_lost;	/* frames, of all devices on the link */
	bool gone;		/* by injection */
	uint32_t port_flags;	/* SKUA_PORT_F_* */
	uint32_t mtu;
	uint32_t eqs, pds, cqs, qps, mrs;	/* objects alive */
};

struct skua_qp_info {
	uint32_t qpn;
	uint32_t dest_qpn;
	uint8_t type;		/* enum skua_qp_type */
	uint8_t state;		/* enum skua_qp_state */
	uint32_t sq_psn;	/* next to send */
	uint32_t una_psn;	/* oldest not acknowledged */
	uint32_t rq_psn;	/* next expected */
	uint32_t retries;	/* of the oldest request, so far */
	uint32_t rnr_retries;
	uint32_t waiting;	/* send WQEs taken and not completed */
	uint32_t path_mtu;	/* bytes */
	uint64_t rate;		/* bits a second; 0: as fast as it can */
	uint32_t qkey;		/* UD and GSI */
	uint32_t pdn, scqn, rcqn;	/* 0: it has none */
	uint32_t xrcdn;			/* XRC_TGT; else 0 */
};

struct skua_cq_info {
	uint32_t cqn, eqn;
	uint32_t size;		/* CQEs */
	uint32_t pi;		/* CQEs written */
	uint32_t ci;		/* and consumed, as far as the device has looked */
	uint32_t queues;	/* of QPs that complete into it */
	bool error;
};

struct skua_mr_info {
	uint32_t key, pdn;
	uint8_t window;		/* enum skua_mw_type; 0: it is an MR, of this type: */
	uint8_t type;		/* enum skua_mr_type */
	bool valid;		/* not invalidated; a window: bound */
	uint32_t access;	/* SKUA_ACCESS_* */
	uint64_t iova, length;
	uint32_t pages;		/* 0: a window, or device memory */
	uint64_t page_size;
};

void skua_dev_get_info(const struct skua_dev *dev, struct skua_dev_info *info);
/* Counters, in host byte order, by the names and the order of SKUA_STATS. */
void skua_dev_get_stats(const struct skua_dev *dev, uint64_t *values);
/*
 * Calls @fn for objects of a kind, with a struct skua_{qp,cq,mr}_info: for as many as fit in a step of the engine. True:
 * there are more; call it again with the same walk, which begins with zeros. Is anew set when @fn is called, all objects
 * come again from the first one.
 */
struct skua_walk {
	uint32_t at, slots;
	bool anew;
};
typedef void skua_info_fn(const void *info, void *arg);
bool skua_dev_for_each_qp(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn, void *arg);
bool skua_dev_for_each_cq(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn, void *arg);
bool skua_dev_for_each_mr(const struct skua_dev *dev, struct skua_walk *walk, skua_info_fn *fn, void *arg);
/* Sets the capture of the device's port, or ends it with NULL; returns the earlier one. */
struct capture *skua_dev_set_capture(struct skua_dev *dev, struct capture *cap);
void skua_dev_set_link(struct skua_dev *dev, bool up);
/* What the port's frames suffer from now on (link/impair.h); NULL: nothing. False: no memory. */
bool skua_dev_set_impair(struct skua_dev *dev, const struct impair_config *config);
/* That, with counts; NULL: nothing. */
const struct impair_config *skua_dev_get_impair(const struct skua_dev *dev);

/* 0; -ENOENT: no object of that number; -ENXIO: the device is not enabled, or has no
 * asynchronous EQ. */
int skua_dev_inject(struct skua_dev *dev, enum skua_fault fault, uint32_t number);

#endif /* SKUAD_NIC_CONTROL_H */
