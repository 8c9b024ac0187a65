// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device as a whole: registers, doorbells, reset, and its turn in the engine's round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/persist.h"
#include "core/dm.h"
#include "core/fault.h"
#include "core/sparse.h"
#include "core/transport.h"
#include "eth/eth.h"
#include "eth/steer.h"
#include "nic/dev.h"
#include "packet/packet.h"
#include "roce/roce.h"
#include "roce/rx.h"

static const uint8_t all_ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };

/* All objects gone, as reset leaves the device; true when there is none left. */
static bool free_objects(struct skua_dev *dev, int32_t *budget)
{
	return flow_free_all(dev, budget) && qp_free_all(dev, budget) && srq_free_all(dev, budget) &&
	       xrcd_free_all(dev, budget) && counter_free_all(dev, budget) && mr_free_all(dev, budget) &&
	       dm_free_all(dev, budget) && cq_free_all(dev, budget) && eq_free_all(dev, budget) &&
	       pd_free_all(dev, budget) && sent_free_all(dev, budget) && pages_free_old(&dev->old_pages, budget) &&
	       sparse_free_old(dev, budget);
}

static struct skua_dev *dev_of(const struct engine_client *client)
{
	return (void *)((char *)client - offsetof(struct skua_dev, client));
}

/* Until no other thread refers to memory of this device. Each step of the others is short, and
 * what they have sent to us meanwhile is taken, so two that wait cannot stop each other. */
static void drain(struct skua_dev *dev)
{
	uint64_t ticket = port_ticket(dev->port);
	struct engine_client *other;

	while (!port_drained(dev->port, ticket))
		TAILQ_FOREACH(other, &dev->engine->clients, entry)
			port_receive(dev_of(other)->port);
}

/* The end of a reset, which takes as long as there are objects; until then the device does nothing else. The budget is
 * the turn, because transports charge the turn for what they free. */
static void reset_run(struct skua_dev *dev)
{
	dev->engine->turn = STEP_COST;
	if (free_objects(dev, &dev->engine->turn))
		dev->status |= SKUA_STATUS_READY;
}

void skua_dev_reset(struct skua_dev *dev)
{
	/* A reset is under way, and skua_dev_run() goes on with it. A driver may ask many times in a step. */
	if (!dev->status)
		return;
	dev->status = 0;
	dev->health = SKUA_HEALTH_OK;
	dev->accepted = 0;
	dev->features = 0;
	/* Trains refer to WQEs as well as to host memory. */
	drain(dev);
	cmdq_reset(dev);
	async_event_forget(dev, &dev->fatal_event);
	async_event_forget(dev, &dev->port_event);
	port_reset(dev);
	roce_reset(dev);
	inject_reset(dev);
	flood_reset(dev);
	reset_run(dev);
}

static bool run(struct engine_client *client)
{
	return skua_dev_run(dev_of(client));
}

static bool is_active(const struct engine_client *client)
{
	return skua_dev_active(dev_of(client));
}

static bool is_blocked(const struct engine_client *client)
{
	return port_is_blocked(dev_of(client)->port);
}

/* By type of QP. */
static const struct transport_ops *const transports[NUM_QP_TYPES] = {
	[SKUA_QPT_RC] = &rc_ops,
	[SKUA_QPT_UC] = &uc_ops,
	[SKUA_QPT_UD] = &ud_ops,
	[SKUA_QPT_GSI] = &gsi_ops,
	[SKUA_QPT_XRC_INI] = &xrc_ini_ops,
	[SKUA_QPT_XRC_TGT] = &xrc_tgt_ops,
	[SKUA_QPT_ETH] = &eth_ops,
};

/* The packets of a train as frames, for @rx. A port that is not enabled takes none, so none is made for it. */
static void cut_train(struct skua_dev *dev, const struct train *t,
		      void (*rx)(struct skua_dev *dev, const struct seglist *frame))
{
	uint8_t buf[ROCE_MAX_PACKET];
	struct seglist frame;

	if (!dev_running(dev) || !(dev->port_flags & SKUA_PORT_F_ENABLE))
		return;
	frame.n = 1;
	for (uint32_t i = 0; i < t->npkts; i++) {
		frame.bytes = (uint32_t)roce_packet_build(buf, t, i);
		frame.seg[0] = (struct seg){ buf, frame.bytes };
		engine_charge_copy(dev->engine, frame.bytes);
		rx(dev, &frame);
	}
}

static void rx_train(void *owner, const struct train *t)
{
	if (!roce_rx_train(owner, t))
		cut_train(owner, t, eth_rx_frame);
}

void skua_dev_rx_frame(struct skua_dev *dev, const struct seglist *frame)
{
	if (!roce_rx_frame(dev, frame->seg[0].p, frame->bytes))
		eth_rx_frame(dev, frame);
}

static void rx_frame(void *owner, const struct seglist *frame)
{
	skua_dev_rx_frame(owner, frame);
}

static void tx_refused(void *owner, uint32_t n)
{
	struct skua_dev *dev = owner;

	STAT_ADD(dev, tx_spoofed, n);
}

static const struct port_ops port_ops = {
	.rx_train = rx_train, .rx_frame = rx_frame, .tx_refused = tx_refused,
};

/* RAW-8: sniffers first. */
static void rx_sniffed_train(void *owner, const struct train *t)
{
	cut_train(owner, t, steer_sniff);
	rx_train(owner, t);
}

static void rx_sniffed_frame(void *owner, const struct seglist *frame)
{
	steer_sniff(owner, frame);
	skua_dev_rx_frame(owner, frame);
}

static const struct port_ops sniffed_ops = {
	.rx_train = rx_sniffed_train, .rx_frame = rx_sniffed_frame, .tx_refused = tx_refused,
};

struct skua_dev *skua_dev_create(struct engine *engine, const struct skua_dev_config *config,
				 const struct skua_host_ops *ops, void *host)
{
	struct skua_dev *dev;
	int err = ENOMEM;

	if (!config->name || !config->link || config->mac[0] & 1) {
		errno = EINVAL;
		return NULL;
	}
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;
	dev->engine = engine;
	dev->client = (struct engine_client){ .run = run, .is_active = is_active, .is_blocked = is_blocked };
	dev->ops = ops;
	dev->host = host;
	dev->transports = transports;
	dev->port_ops = &port_ops;
	dev->sniffed_ops = &sniffed_ops;
	dev->name = strdup(config->name);
	dev->link_name = strdup(config->link);
	dev->max_pages = config->max_pages ? config->max_pages : SKUA_DEV_MAX_PAGES;
	dev->status = SKUA_STATUS_READY;	/* to be reset */
	memcpy(dev->perm_mac, config->mac, sizeof(dev->perm_mac));
	hostmem_init(&dev->mem);
	TAILQ_INIT(&dev->async_pending);
	TAILQ_INIT(&dev->faults_pending);
	TAILQ_INIT(&dev->active);
	TAILQ_INIT(&dev->flood.kept);
	TAILQ_INIT(&dev->err_qps);
	TAILQ_INIT(&dev->failed_cqs);
	TAILQ_INIT(&dev->flows);
	TAILQ_INIT(&dev->sniffers);
	if (!dev->name || !dev->link_name || !roce_create(dev) || numtab_init(&dev->eqs, LIMIT_EQ, false) ||
	    numtab_init(&dev->pds, LIMIT_PD, false) || numtab_init(&dev->cqs, LIMIT_CQ, false) ||
	    numtab_init(&dev->qps, LIMIT_QP, true) || numtab_init(&dev->mrs, LIMIT_MR + LIMIT_MW, true) ||
	    numtab_init(&dev->srqs, LIMIT_SRQ, true) || numtab_init(&dev->xrcds, LIMIT_XRCD, false) ||
	    numtab_init(&dev->dms, LIMIT_DM / SKUA_PAGE_SIZE, false) ||
	    numtab_init(&dev->flow_numbers, LIMIT_FLOW, false) || numtab_init(&dev->rsss, LIMIT_RSS, false) ||
	    numtab_init(&dev->counter_sets, LIMIT_COUNTER_SET, false) ||
	    numtab_init(&dev->faults, FAULT_SIDES * LIMIT_QP, false))
		goto fail;
	dev->port = port_create(engine, config->link, &port_ops, dev);
	if (!dev->port) {
		err = errno;
		goto fail;
	}
	if (config->persistent) {
		dev->persist = persist_create(engine);
		if (!dev->persist) {
			port_destroy(dev->port);
			goto fail;
		}
	}
	port_allow_spoof(dev->port, config->spoof);
	engine_join(engine, &dev->client);
	skua_dev_reset(dev);
	return dev;

fail:
	roce_destroy(dev);
	numtab_free(&dev->eqs);
	numtab_free(&dev->pds);
	numtab_free(&dev->cqs);
	numtab_free(&dev->qps);
	numtab_free(&dev->mrs);
	numtab_free(&dev->srqs);
	numtab_free(&dev->counter_sets);
	numtab_free(&dev->xrcds);
	numtab_free(&dev->dms);
	numtab_free(&dev->flow_numbers);
	numtab_free(&dev->rsss);
	numtab_free(&dev->faults);
	free(dev->name);
	free(dev->link_name);
	free(dev);
	errno = err;
	return NULL;
}

void skua_dev_destroy(struct skua_dev *dev)
{
	int32_t budget;

	cmdq_reset(dev);
	do
		budget = STEP_COST;
	while (!free_objects(dev, &budget));
	engine_leave(dev->engine, &dev->client);
	timer_cancel(&dev->engine->timers, &dev->err_timer);
	timer_cancel(&dev->engine->timers, &dev->fault_timer);
	flood_reset(dev);
	port_destroy(dev->port);
	if (dev->persist)
		persist_destroy(dev->persist);
	hostmem_free(&dev->mem);
	roce_destroy(dev);
	numtab_free(&dev->eqs);
	numtab_free(&dev->pds);
	numtab_free(&dev->cqs);
	numtab_free(&dev->qps);
	numtab_free(&dev->mrs);
	numtab_free(&dev->srqs);
	numtab_free(&dev->counter_sets);
	numtab_free(&dev->xrcds);
	numtab_free(&dev->dms);
	numtab_free(&dev->flow_numbers);
	numtab_free(&dev->rsss);
	numtab_free(&dev->faults);
	free(dev->name);
	free(dev->link_name);
	free(dev);
}

bool skua_dev_is_persistent(const struct skua_dev *dev)
{
	return dev->persist;
}

const char *skua_dev_name(const struct skua_dev *dev)
{
	return dev->name;
}

void skua_dev_set_bus_master(struct skua_dev *dev, bool on)
{
	dev->bus_master = on;
	hostmem_enable(&dev->mem, on);
	if (!on)
		drain(dev);
}

int skua_dev_mem_map(struct skua_dev *dev, uint64_t iova, uint64_t size, void *host,
		     bool writable)
{
	return hostmem_add(&dev->mem, iova, size, host, writable);
}

int skua_dev_mem_unmap(struct skua_dev *dev, uint64_t iova, uint64_t size)
{
	int err = hostmem_del(&dev->mem, iova, size);

	if (!err)
		drain(dev);
	return err;
}

void skua_dev_mem_unmap_all(struct skua_dev *dev)
{
	hostmem_clear(&dev->mem);
	drain(dev);
}

#define F(name)	(1ull << SKUA_F_##name)

/* What features need (manual: features): all of some, and one of others. What a feature needs stands before it. */
static const struct {
	uint64_t feature, all, any;
} needs[] = {
	{ F(INVALIDATE), 0, F(RC) | F(UC) },
	{ F(ATOMIC), F(RC), 0 },
	{ F(MASKED_ATOMIC), F(ATOMIC), 0 },
	{ F(ETH_CSUM), F(ETHERNET), 0 },
	{ F(ETH_RSS), F(ETHERNET), 0 },
	{ F(XRC), F(RC) | F(SRQ), 0 },
	{ F(MW), 0, F(RC) | F(UC) },
	{ F(FAST_REG), F(INVALIDATE), 0 },
	{ F(SG_GAPS), F(FAST_REG), 0 },
	{ F(FLUSH), F(RC), 0 },
	{ F(ATOMIC_WRITE), F(RC), 0 },
	{ F(RAW_PACKET), F(ETHERNET), 0 },
	{ F(TSO), F(ETHERNET), 0 },
	{ F(IP_CSUM), F(ETHERNET), 0 },
	{ F(STRIP_CVLAN), F(ETHERNET), 0 },
	{ F(TAG_MATCHING), F(RC) | F(UD) | F(SRQ), 0 },
};

/* Features that lack others have no effect. */
static uint64_t effective(uint64_t features)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (needs[i].all & ~features || (needs[i].any && !(needs[i].any & features)))
			features &= ~needs[i].feature;
	return features;
}

static void enable(struct skua_dev *dev)
{
	if (dev->status != SKUA_STATUS_READY)
		return;
	if (dev->accepted & ~FEATURES_OFFERED) {
		skua_dev_fail(dev, SKUA_HEALTH_FEATURES);
		return;
	}
	dev->features = effective(dev->accepted);
	if (cmdq_start(dev))
		dev->status |= SKUA_STATUS_ENABLED;
}

static void control(struct skua_dev *dev, uint32_t value)
{
	if (value & SKUA_CONTROL_RESET)
		skua_dev_reset(dev);
	else if (value & SKUA_CONTROL_ENABLE)
		enable(dev);
}

static void set_half(uint64_t *reg, bool high, uint32_t value)
{
	if (high)
		*reg = (*reg & UINT32_MAX) | (uint64_t)value << 32;
	else
		*reg = (*reg & ~(uint64_t)UINT32_MAX) | value;
}

/* The 64-bit register whose LO word is at @offset, or NULL. */
static uint64_t *reg64(struct skua_dev *dev, uint64_t offset)
{
	switch (offset & ~4ull) {
	case SKUA_REG_ACCEPTED_LO:
		return &dev->accepted;
	case SKUA_REG_CMD_RING_LO:
		return &dev->cmdq.ring_addr;
	case SKUA_REG_CMD_CPL_LO:
		return &dev->cmdq.cpl_addr;
	case SKUA_REG_CMD_DBR_LO:
		return &dev->cmdq.dbr_addr;
	default:
		return NULL;
	}
}

static void reg_write(struct skua_dev *dev, uint64_t offset, uint32_t value)
{
	uint64_t *reg = reg64(dev, offset);
	bool high = offset & 4;

	if (offset == SKUA_REG_CONTROL) {
		control(dev, value);
		return;
	}
	if (dev->status != SKUA_STATUS_READY)
		return;
	/* The registers that come in halves start at multiples of 8. */
	if (reg)
		set_half(reg, high, value);
	else if (offset == SKUA_REG_CMD_LOG_SIZE)
		dev->cmdq.log_size = value;
}

static uint32_t reg_read(struct skua_dev *dev, uint64_t offset)
{
	uint64_t *reg = reg64(dev, offset);

	if (reg)
		return (uint32_t)(offset & 4 ? *reg >> 32 : *reg);
	switch (offset) {
	case SKUA_REG_SIGNATURE:
		return SKUA_SIGNATURE;
	case SKUA_REG_VERSION:
		return SKUA_VERSION(SKUA_VERSION_MAJOR, SKUA_VERSION_MINOR);
	case SKUA_REG_CONTROL:
		return dev->status & SKUA_STATUS_READY ? 0 : SKUA_CONTROL_RESET;
	case SKUA_REG_STATUS:
		return dev->status;
	case SKUA_REG_HEALTH:
		return dev->health;
	case SKUA_REG_FEATURES_LO:
		return (uint32_t)FEATURES_OFFERED;
	case SKUA_REG_FEATURES_HI:
		return (uint32_t)(FEATURES_OFFERED >> 32);
	case SKUA_REG_CLOCK_LO:
		dev->clock_hi = (uint32_t)(engine_now(dev->engine) >> 32);
		return (uint32_t)engine_now(dev->engine);
	case SKUA_REG_CLOCK_HI:
		return dev->clock_hi;
	case SKUA_REG_CMD_LOG_SIZE:
		return dev->cmdq.log_size;
	case SKUA_REG_CMD_MAX_LOG:
		return LIMIT_LOG_CMD;
	default:
		return 0;
	}
}

static void sq_doorbell(struct skua_dev *dev, uint32_t qpn, uint32_t db_page)
{
	struct skua_qp *qp = numtab_get(&dev->qps, qpn);

	if (!qp || qp->db_page != db_page)
		flood_bad_doorbell(dev);
	else
		flood_sq_doorbell(qp);
}

static void doorbell(struct skua_dev *dev, uint64_t offset, uint64_t value)
{
	uint32_t page = (uint32_t)(offset / SKUA_PAGE_SIZE);
	uint32_t number = (uint32_t)value;

	if (!dev_running(dev))
		return;
	switch (offset % SKUA_PAGE_SIZE) {
	case SKUA_DB_SQ:
		sq_doorbell(dev, number, page);
		break;
	case SKUA_DB_CQ_ARM:
		cq_arm_doorbell(dev, number, page);
		break;
	case SKUA_DB_CMD:
		if (page == 0) {
			cmdq_doorbell(dev);
			break;
		}
		/* fall through */
	default:
		flood_bad_doorbell(dev);
	}
}

void skua_dev_bar_write(struct skua_dev *dev, unsigned int bar, uint64_t offset,
			const void *data, size_t len)
{
	uint64_t v64;
	uint32_t v32;

	if (dev->inject.gone)
		return;
	if (bar == SKUA_BAR_REGS && len == 4 && offset % 4 == 0) {
		memcpy(&v32, data, 4);
		reg_write(dev, offset, le32toh(v32));
	} else if (bar == SKUA_BAR_DOORBELL && len == 8 && offset % 8 == 0) {
		memcpy(&v64, data, 8);
		doorbell(dev, offset, le64toh(v64));
	} else if (bar == SKUA_BAR_DOORBELL) {
		flood_bad_doorbell(dev);
	}
}

void skua_dev_bar_read(struct skua_dev *dev, unsigned int bar, uint64_t offset, void *data,
		       size_t len)
{
	uint32_t v32;

	if (dev->inject.gone) {
		memset(data, 0xff, len);
	} else if (bar == SKUA_BAR_REGS && len == 4 && offset % 4 == 0) {
		v32 = htole32(inject_register(dev, offset, reg_read(dev, offset)));
		memcpy(data, &v32, 4);
	} else if (bar == SKUA_BAR_DOORBELL) {
		memset(data, 0, len);
	} else {
		memcpy(data, all_ones, len < 8 ? len : 8);
	}
}

/*
 * ROC-20: QPs that wait for the line take turns. A QP that was refused, and had sent no more than answers before that,
 * is the first when there is room again. One that had sent a request or a response is the last.
 */
static bool run_qps(struct skua_dev *dev)
{
	int32_t *budget = &dev->engine->turn;
	struct skua_qp *qp, *first = NULL, *waits = NULL;
	bool any = false;

	if (dev->debt) {
		dev->debt -= dev->debt < TURN_COST ? dev->debt : TURN_COST;
		return !TAILQ_EMPTY(&dev->active);
	}
	*budget = TURN_COST;
	/* One without anything left of the turn would do nothing, and seem to have nothing to do. */
	while (dev_running(dev) && *budget > LOOK_COST && (qp = TAILQ_FIRST(&dev->active)) && qp != first) {
		if (!first)
			first = qp;
		TAILQ_REMOVE(&dev->active, qp, active_entry);
		TAILQ_INSERT_TAIL(&dev->active, qp, active_entry);
		*budget -= LOOK_COST;
		dev->refused = dev->had_turn = false;
		any |= qp_run(qp, budget);
		if (dev->refused && dev->had_turn)
			break;
		if (dev->refused && !waits)
			waits = qp;
		if (first != qp && !first->active)
			first = qp;
	}
	if (waits && waits->active) {
		TAILQ_REMOVE(&dev->active, waits, active_entry);
		TAILQ_INSERT_HEAD(&dev->active, waits, active_entry);
	}
	/* One datagram for many may cost many turns. */
	if (*budget < -TURN_COST)
		dev->debt = -*budget;
	return any;
}

/* Some of the QPs whose peers have waited for their memory to be persistent. */
static bool wake_persisted(struct skua_dev *dev)
{
	int32_t budget = STEP_COST;
	struct persist_job *job;

	for (; budget > 0 && (job = persist_next_done(dev->persist)); budget -= MESSAGE_COST)
		qp_activate(job->qp);
	return budget != STEP_COST;
}

bool skua_dev_run(struct skua_dev *dev)
{
	bool any = port_receive(dev->port);

	if (dev->persist)
		any |= wake_persisted(dev);
	if (!(dev->status & SKUA_STATUS_READY)) {
		reset_run(dev);
		return true;
	}
	if (!dev_running(dev))
		return any;
	any |= cmdq_run(dev);
	any |= run_qps(dev);
	if (!TAILQ_EMPTY(&dev->failed_cqs))
		any |= cq_run(dev);
	if (dev->events_due) {
		async_event_retry(dev);
		any = true;
	}
	if (dev->faults_due && dev_running(dev)) {
		fault_event_retry(dev);
		any = true;
	}
	return any;
}

bool skua_dev_active(const struct skua_dev *dev)
{
	if (!dev_running(dev))
		return !(dev->status & SKUA_STATUS_READY);
	return cmdq_active(dev) || !TAILQ_EMPTY(&dev->active) || !TAILQ_EMPTY(&dev->failed_cqs) ||
	       dev->events_due || dev->faults_due;
}
