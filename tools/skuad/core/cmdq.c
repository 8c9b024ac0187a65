// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The command queue (manual: commands): commands are copied once, checked, carried out one
 * after the other, a long one in steps.
 *
 * Commands for pages on demand, and those that revoke MRs, are urgent: the owner of the memory waits for them. They are
 * carried out between the steps of a long command, and before commands that wait for it. So all that the host has
 * published is copied first, into a list of each kind. There is room for as many as the ring has entries, which are all
 * that a host may have outstanding.
 */
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "core/device.h"
#include "core/fault.h"
#include "core/sparse.h"

struct command {
	uint16_t opcode;
	uint8_t port;			/* what hdr.port must be */
	bool output;
	uint16_t body;			/* bytes of the body that are not reserved */
	uint64_t features;		/* that it needs */
	int (*run)(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
};

#define RSS	(1ull << SKUA_F_ETH_RSS)
#define UD	(1ull << SKUA_F_UD)
#define SRQ	(1ull << SKUA_F_SRQ)
#define XRC	(1ull << SKUA_F_XRC)
#define CQ_SIZE	(1ull << SKUA_F_CQ_RESIZE)
#define CQ_HOLD	(1ull << SKUA_F_CQ_MODER)
#define MW	(1ull << SKUA_F_MW)
#define ON_DEMAND	(1ull << SKUA_F_ON_DEMAND)
#define DM	(1ull << SKUA_F_DM)
#define MR_MODIFY (1ull << SKUA_F_MR_MODIFY)
#define MR_REVOKE (1ull << SKUA_F_MR_REVOKE)
#define RAW	(1ull << SKUA_F_RAW_PACKET)
#define COUNTER	(1ull << SKUA_F_COUNTER_SET)

#define TAKE_MAX	16	/* commands that are copied in a step: 4 KiB */

struct taken_cmd {
	STAILQ_ENTRY(taken_cmd) entry;
	struct skua_cmd cmd;
};

static int cmd_nop(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	(void)dev;
	(void)cpl;
	return SKUA_CMD_OK;
}

static const struct command commands[] = {
	{ SKUA_CMD_NOP,		 0, false, 0, 0,	cmd_nop },
	{ SKUA_CMD_QUERY_DEVICE, 0, true,  0, 0,	cmd_query_device },
	{ SKUA_CMD_QUERY_PORT,	 1, true,  0, 0,	cmd_query_port },
	{ SKUA_CMD_SET_PORT,	 1, false, 22, 0,	cmd_set_port },
	{ SKUA_CMD_QUERY_STATS,	 0, true,  0, 0,	cmd_query_stats },
	{ SKUA_CMD_SET_GID,	 1, false, 26, 0,	cmd_set_gid },
	{ SKUA_CMD_SET_RSS,	 1, false, 176, RSS,	cmd_set_rss },
	{ SKUA_CMD_CREATE_EQ,	 0, false, 128, 0,	cmd_create_eq },
	{ SKUA_CMD_DESTROY_EQ,	 0, false, 4, 0,	cmd_destroy_eq },
	{ SKUA_CMD_CREATE_PD,	 0, false, 0, 0,	cmd_create_pd },
	{ SKUA_CMD_DESTROY_PD,	 0, false, 4, 0,	cmd_destroy_pd },
	{ SKUA_CMD_CREATE_CQ,	 0, false, 128, 0,	cmd_create_cq },
	{ SKUA_CMD_DESTROY_CQ,	 0, false, 4, 0,	cmd_destroy_cq },
	{ SKUA_CMD_RESIZE_CQ,	 0, false, 128, CQ_SIZE, cmd_resize_cq },
	{ SKUA_CMD_MODIFY_CQ,	 0, false, 8, CQ_HOLD,	cmd_modify_cq },
	{ SKUA_CMD_CREATE_QP,	 0, false, 192, 0,	cmd_create_qp },
	{ SKUA_CMD_MODIFY_QP,	 0, false, 160, 0,	cmd_modify_qp },
	{ SKUA_CMD_QUERY_QP,	 0, true,  4, 0,	cmd_query_qp },
	{ SKUA_CMD_DESTROY_QP,	 0, false, 4, 0,	cmd_destroy_qp },
	{ SKUA_CMD_CREATE_MR,	 0, false, 128, 0,	cmd_create_mr },
	{ SKUA_CMD_DESTROY_MR,	 0, false, 4, 0,	cmd_destroy_mr },
	{ SKUA_CMD_MODIFY_MR,	 0, false, 128, MR_MODIFY, cmd_modify_mr },
	{ SKUA_CMD_INVALIDATE_MR, 0, false, 4, MR_REVOKE, cmd_invalidate_mr },
	{ SKUA_CMD_UPDATE_PAGES, 0, false, 32, ON_DEMAND, cmd_update_pages },
	{ SKUA_CMD_FAULT_RESUME, 0, false, 5, ON_DEMAND, cmd_fault_resume },
	{ SKUA_CMD_CREATE_MW,	 0, false, 5, MW,	cmd_create_mw },
	{ SKUA_CMD_DESTROY_MW,	 0, false, 4, MW,	cmd_destroy_mw },
	{ SKUA_CMD_ATTACH_MCAST, 0, false, 24, UD,	cmd_attach_mcast },
	{ SKUA_CMD_DETACH_MCAST, 0, false, 24, UD,	cmd_detach_mcast },
	{ SKUA_CMD_CREATE_SRQ,	 0, false, 128, SRQ,	cmd_create_srq },
	{ SKUA_CMD_MODIFY_SRQ,	 0, false, 128, SRQ,	cmd_modify_srq },
	{ SKUA_CMD_QUERY_SRQ,	 0, true,  4, SRQ,	cmd_query_srq },
	{ SKUA_CMD_DESTROY_SRQ,	 0, false, 4, SRQ,	cmd_destroy_srq },
	{ SKUA_CMD_CREATE_XRCD,	 0, false, 0, XRC,	cmd_create_xrcd },
	{ SKUA_CMD_DESTROY_XRCD, 0, false, 4, XRC,	cmd_destroy_xrcd },
	{ SKUA_CMD_ALLOC_DM,	 0, false, 9, DM,	cmd_alloc_dm },
	{ SKUA_CMD_FREE_DM,	 0, false, 4, DM,	cmd_free_dm },
	{ SKUA_CMD_DM_COPY,	 0, false, 25, DM,	cmd_dm_copy },
	{ SKUA_CMD_CREATE_FLOW,	 0, false, 192, RAW,	cmd_create_flow },
	{ SKUA_CMD_DESTROY_FLOW, 0, false, 4, RAW,	cmd_destroy_flow },
	{ SKUA_CMD_CREATE_RSS,	 0, false, 176, RAW,	cmd_create_rss },
	{ SKUA_CMD_DESTROY_RSS,	 0, false, 4, RAW,	cmd_destroy_rss },
	{ SKUA_CMD_CREATE_COUNTER_SET,	0, false, 0, COUNTER, cmd_create_counter_set },
	{ SKUA_CMD_DESTROY_COUNTER_SET, 0, false, 4, COUNTER, cmd_destroy_counter_set },
	{ SKUA_CMD_QUERY_COUNTER_SET,	0, true,  4, COUNTER, cmd_query_counter_set },
	{ SKUA_CMD_BIND_COUNTER_SET,	0, false, 8, COUNTER, cmd_bind_counter_set },
};

static const struct command *find(uint16_t opcode)
{
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].opcode == opcode)
			return &commands[i];
	return NULL;
}

static bool all_zero(const void *p, size_t len)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < len; i++)
		if (b[i])
			return false;
	return true;
}

#define RSVD_ZERO(s, member)	all_zero((s)->member, sizeof((s)->member))

/* Reserved fields in the middle of bodies; those at the end are behind command.body. */
static bool rsvd_zero(const struct skua_cmd *cmd)
{
	switch (le16toh(cmd->hdr.opcode)) {
	case SKUA_CMD_SET_RSS:
		return RSVD_ZERO(&cmd->set_rss, rsvd0);
	case SKUA_CMD_CREATE_EQ:
		return !cmd->create_eq.rsvd0 && RSVD_ZERO(&cmd->create_eq, rsvd1);
	case SKUA_CMD_CREATE_CQ:
		return RSVD_ZERO(&cmd->create_cq, rsvd0) && !cmd->create_cq.rsvd1 &&
		       RSVD_ZERO(&cmd->create_cq, rsvd2);
	case SKUA_CMD_RESIZE_CQ:
		return RSVD_ZERO(&cmd->resize_cq, rsvd0);
	case SKUA_CMD_CREATE_QP:
		return RSVD_ZERO(&cmd->create_qp, rsvd0);
	case SKUA_CMD_CREATE_SRQ:
		return RSVD_ZERO(&cmd->create_srq, rsvd0) && RSVD_ZERO(&cmd->create_srq, rsvd1);
	case SKUA_CMD_MODIFY_SRQ:
		return RSVD_ZERO(&cmd->modify_srq, rsvd0);
	case SKUA_CMD_MODIFY_QP:
		return RSVD_ZERO(&cmd->modify_qp, rsvd0) &&
		       !cmd->modify_qp.attr.rsvd0 && !cmd->modify_qp.attr.rsvd1 &&
		       RSVD_ZERO(&cmd->modify_qp.attr, rsvd2) && !cmd->modify_qp.attr.av.rsvd &&
		       RSVD_ZERO(&cmd->modify_qp.attr, rsvd3);
	case SKUA_CMD_CREATE_MR:
		return RSVD_ZERO(&cmd->create_mr, rsvd0) && RSVD_ZERO(&cmd->create_mr, rsvd1);
	case SKUA_CMD_MODIFY_MR:
		return RSVD_ZERO(&cmd->modify_mr, rsvd0);
	case SKUA_CMD_UPDATE_PAGES:
		return !cmd->update_pages.rsvd0;
	case SKUA_CMD_CREATE_FLOW:
		return !cmd->flow.rsvd0 && RSVD_ZERO(&cmd->flow, rsvd1);
	case SKUA_CMD_CREATE_RSS:
		return RSVD_ZERO(&cmd->rss, rsvd0);
	case SKUA_CMD_ATTACH_MCAST:
	case SKUA_CMD_DETACH_MCAST:
		return !cmd->mcast.rsvd0;
	default:
		return true;
	}
}

static int check(const struct skua_dev *dev, const struct skua_cmd *cmd, const struct command *c)
{
	const struct skua_cmd_hdr *hdr = &cmd->hdr;

	if (!c || c->features & ~dev->features)
		return SKUA_CMD_BAD_OPCODE;
	if (hdr->function || hdr->port != c->port || hdr->rsvd0 || hdr->rsvd1 ||
	    le16toh(hdr->flags) & ~SKUA_CMD_EVENT)
		return SKUA_CMD_BAD_PARAM;
	if (c->output ? le64toh(hdr->out_addr) % 8 || (!hdr->out_addr && hdr->out_len) : hdr->out_len || hdr->out_addr)
		return SKUA_CMD_BAD_PARAM;
	if (!all_zero(cmd->body + c->body, sizeof(cmd->body) - c->body) || !rsvd_zero(cmd))
		return SKUA_CMD_BAD_PARAM;
	return SKUA_CMD_OK;
}

/* As cmd_drain(), with the state of the command. */
static int drain(struct skua_dev *dev, bool *draining, uint64_t *ticket)
{
	if (!*draining)
		*ticket = port_ticket(dev->port);
	*draining = !port_drained(dev->port, *ticket);
	return *draining ? -1 : SKUA_CMD_OK;
}

int cmd_drain(struct skua_dev *dev)
{
	return drain(dev, &dev->cmdq.draining, &dev->cmdq.ticket);
}

int cmd_drain_urgent(struct skua_dev *dev)
{
	return drain(dev, &dev->cmdq.urgent.draining, &dev->cmdq.urgent.ticket);
}

int cmd_output(struct skua_dev *dev, struct skua_cmd_cpl *cpl, const void *out, uint32_t len)
{
	const struct skua_cmd_hdr *hdr = &dev->cmdq.cmd.hdr;
	uint64_t addr = le64toh(hdr->out_addr);
	const uint8_t *src = out;

	if (len > le32toh(hdr->out_len))
		len = le32toh(hdr->out_len);
	cpl->out_len = htole32(len);
	while (len) {
		uint64_t run;
		uint8_t *p = hostmem_run(&dev->mem, addr, true, &run);

		if (!p) {
			cpl->out_len = 0;
			return SKUA_CMD_BAD_ADDRESS;
		}
		if (run > len)
			run = len;
		copy_to_host(p, src, run);
		addr += run;
		src += run;
		len -= (uint32_t)run;
	}
	return SKUA_CMD_OK;
}

bool pages_charge(struct skua_dev *dev, uint32_t npages)
{
	if (npages > dev->max_pages - dev->pages_used)
		return false;
	dev->pages_used += npages;
	return true;
}

void pages_release(struct skua_dev *dev, struct pages *pages)
{
	dev->pages_used -= pages->n;
	pages_free(pages, &dev->old_pages);
}

int ring_check(const struct skua_pagelist *list, uint64_t size, uint32_t entry)
{
	return le64toh(list->offset) % entry ? SKUA_CMD_BAD_PARAM : pages_check(list, size);
}

int pages_reserve(struct skua_dev *dev, struct pages *pages, const struct skua_pagelist *list)
{
	if (!pages_charge(dev, le32toh(list->npages)))
		return SKUA_CMD_NO_RESOURCE;
	*pages = (struct pages){ .n = le32toh(list->npages) };
	return SKUA_CMD_OK;
}

int pages_make_room(struct skua_dev *dev, struct pages *pages, uint32_t npages)
{
	if (!pages_charge(dev, npages))
		return SKUA_CMD_NO_RESOURCE;
	*pages = (struct pages){ .n = npages };
	return pages_alloc(pages) ? SKUA_CMD_OK : SKUA_CMD_NO_RESOURCE;
}

void cmd_makes(struct skua_dev *dev, void *object, void (*unmake)(struct skua_dev *dev, void *object))
{
	dev->cmdq.making = object;
	dev->cmdq.unmake = unmake;
}

static void free_ring(struct skua_dev *dev, void *object)
{
	struct pages *ring = object;

	pages_release(dev, ring);
	free(ring);
}

int list_begin(struct skua_dev *dev, const struct skua_pagelist *list)
{
	struct pages *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return SKUA_CMD_NO_RESOURCE;
	cmd_makes(dev, ring, free_ring);
	return pages_reserve(dev, ring, list);
}

void list_replace(struct skua_dev *dev, struct pages *old)
{
	struct pages *ring = dev->cmdq.making;

	pages_release(dev, old);
	*old = *ring;
	free(ring);
	dev->cmdq.making = NULL;
}

int list_load(struct skua_dev *dev, struct pages *pages, const struct skua_pagelist *list, uint64_t size, bool write)
{
	struct pages_load *load = &dev->cmdq.load;
	int status;

	if (!pages->addr) {
		status = pages_load_start(load, pages, list, size, write);
		if (status)
			return status;
	} else if (load->pages != pages) {
		return SKUA_CMD_OK;
	}
	return pages_load_step(load, &dev->mem);
}

void cmdq_reset(struct skua_dev *dev)
{
	struct cmdq *q = &dev->cmdq;

	if (q->making)
		q->unmake(dev, q->making);
	free(q->taken);
	*q = (struct cmdq){ 0 };
}

/* Lists of commands that are taken, and room for @n of them. */
static bool make_room(struct cmdq *q, uint32_t n)
{
	q->taken = malloc(n * sizeof(*q->taken));
	STAILQ_INIT(&q->free);
	STAILQ_INIT(&q->waiting);
	STAILQ_INIT(&q->urgent_waiting);
	for (uint32_t i = 0; q->taken && i < n; i++)
		STAILQ_INSERT_TAIL(&q->free, &q->taken[i], entry);
	return q->taken;
}

bool cmdq_start(struct skua_dev *dev)
{
	struct cmdq *q = &dev->cmdq;
	uint64_t n;

	if (q->log_size > LIMIT_LOG_CMD) {
		skua_dev_fail(dev, SKUA_HEALTH_CMD_SIZE);
		return false;
	}
	n = 1ull << q->log_size;
	q->dbr = (struct mem_ref){ .iova = q->dbr_addr };
	if (q->ring_addr % 4096 || q->cpl_addr % 4096 || q->dbr_addr % 64 ||
	    !hostmem_reaches(&dev->mem, q->ring_addr, n * sizeof(struct skua_cmd), false) ||
	    !hostmem_reaches(&dev->mem, q->cpl_addr, n * sizeof(struct skua_cmd_cpl), true) ||
	    !mem_ref_at(&dev->mem, &q->dbr, sizeof(struct skua_dbr), true)) {
		skua_dev_fail(dev, SKUA_HEALTH_CMD_ADDRESS);
		return false;
	}
	if (!make_room(q, (uint32_t)n)) {
		skua_dev_fail(dev, SKUA_HEALTH_INTERNAL);
		return false;
	}
	q->awake = true;
	return true;
}

static void complete(struct skua_dev *dev, const struct skua_cmd_hdr *hdr, struct skua_cmd_cpl *cpl, int status)
{
	struct cmdq *q = &dev->cmdq;
	uint32_t n = 1u << q->log_size;
	uint8_t *p = hostmem_at(&dev->mem, q->cpl_addr + (q->cpl_pi & (n - 1)) * sizeof(*cpl),
				sizeof(*cpl), true);

	if (!p) {
		skua_dev_fail(dev, SKUA_HEALTH_CMD_ADDRESS);
		return;
	}
	if (status)
		STAT_INC(dev, bad_commands);
	cpl->id = hdr->id;
	cpl->status = (uint8_t)status;
	cpl->flags = q->cpl_pi & n ? 0 : SKUA_CMD_CPL_PHASE;
	copy_entry(p, cpl, sizeof(*cpl));
	q->cpl_pi++;
	if (le16toh(hdr->flags) & SKUA_CMD_EVENT) {
		STAT_INC(dev, interrupts);
		dev->ops->raise_irq(dev->host, 0);
	}
	async_event_retry(dev);
	fault_event_retry(dev);
}

/* Is a command carried out, does one wait for that, or is there to be freed what one has released? */
static bool has_work(const struct skua_dev *dev)
{
	const struct cmdq *q = &dev->cmdq;

	return q->busy || q->urgent.busy || !STAILQ_EMPTY(&q->waiting) || !STAILQ_EMPTY(&q->urgent_waiting) ||
	       dev->old_pages || dev->old_tables;
}

/* Look for commands, and ask for the doorbell if there is nothing to do. False: the device is dead. */
static bool look(struct skua_dev *dev)
{
	struct cmdq *q = &dev->cmdq;
	struct skua_dbr *dbr = mem_ref_at(&dev->mem, &q->dbr, sizeof(*dbr), true);

	if (!dbr) {
		skua_dev_fail(dev, SKUA_HEALTH_CMD_ADDRESS);
		return false;
	}
	if (q->pi == q->ci)
		q->pi = host_load32(&dbr->pi);
	if (q->pi == q->ci && !has_work(dev)) {
		/* Ask for the doorbell, then look once more. */
		if (dev_has(dev, SKUA_F_EVENT_IDX))
			host_store32(&dbr->event, q->pi);
		host_full_barrier();
		q->pi = host_load32(&dbr->pi);
		q->awake = q->pi != q->ci;
	}
	if (q->pi - q->ci <= 1u << q->log_size)
		return true;
	skua_dev_fail(dev, SKUA_HEALTH_CMD_OVERRUN);
	return false;
}

static bool is_urgent(const struct skua_cmd *cmd)
{
	uint16_t opcode = le16toh(cmd->hdr.opcode);

	return opcode == SKUA_CMD_INVALIDATE_MR || opcode == SKUA_CMD_UPDATE_PAGES || opcode == SKUA_CMD_FAULT_RESUME;
}

/* Copy commands, as far as there is room. False: the device is dead. */
static bool take(struct skua_dev *dev)
{
	struct cmdq *q = &dev->cmdq;
	uint32_t n = 1u << q->log_size;
	struct taken_cmd *cmd;
	const uint8_t *p;

	if (!look(dev))
		return false;
	for (int i = 0; i < TAKE_MAX && q->pi != q->ci && (cmd = STAILQ_FIRST(&q->free)); i++) {
		p = hostmem_at(&dev->mem, q->ring_addr + (q->ci & (n - 1)) * sizeof(cmd->cmd), sizeof(cmd->cmd), false);
		if (!p) {
			skua_dev_fail(dev, SKUA_HEALTH_CMD_ADDRESS);
			return false;
		}
		copy_from_host(&cmd->cmd, p, sizeof(cmd->cmd));
		q->ci++;
		STAILQ_REMOVE_HEAD(&q->free, entry);
		if (is_urgent(&cmd->cmd))
			STAILQ_INSERT_TAIL(&q->urgent_waiting, cmd, entry);
		else
			STAILQ_INSERT_TAIL(&q->waiting, cmd, entry);
	}
	return true;
}

/* The first command of a list. False: there is none. */
static bool next(struct cmdq *q, struct taken_cmds *from, struct skua_cmd *cmd)
{
	struct taken_cmd *first = STAILQ_FIRST(from);

	if (!first)
		return false;
	*cmd = first->cmd;
	STAILQ_REMOVE_HEAD(from, entry);
	STAILQ_INSERT_HEAD(&q->free, first, entry);
	return true;
}

/* Begin a command: its status so far. False: it is not to be carried out, by will of a test. */
static bool begin(struct skua_dev *dev, const struct skua_cmd *cmd, int *status)
{
	const struct command *c = find(le16toh(cmd->hdr.opcode));

	STAT_INC(dev, commands);
	if (inject_takes_command(dev))
		return false;
	*status = check(dev, cmd, c);
	if (!*status && inject_fails_command(dev, cmd))
		*status = SKUA_CMD_NO_RESOURCE;
	return true;
}

/* Go on with an urgent command, or begin the next. True if anything was done. */
static bool run_urgent(struct skua_dev *dev)
{
	struct urgent_cmd *u = &dev->cmdq.urgent;
	struct skua_cmd_cpl cpl = { 0 };
	int status = SKUA_CMD_OK;

	if (!u->busy) {
		if (!next(&dev->cmdq, &dev->cmdq.urgent_waiting, &u->cmd))
			return false;
		if (!begin(dev, &u->cmd, &status))
			return true;
	}
	if (!status)
		status = find(le16toh(u->cmd.hdr.opcode))->run(dev, &cpl);
	u->busy = status < 0;
	if (!u->busy && dev_running(dev))
		complete(dev, &u->cmd.hdr, &cpl, status);
	return true;
}

/* The same of all others. */
static bool run_next(struct skua_dev *dev)
{
	struct cmdq *q = &dev->cmdq;
	struct skua_cmd_cpl cpl = { 0 };
	int32_t budget = STEP_COST;
	int status = SKUA_CMD_OK;

	if (!q->busy) {
		/* What commands before have released comes first, so that it cannot pile up. */
		if (dev->old_pages || dev->old_tables) {
			pages_free_old(&dev->old_pages, &budget);
			sparse_free_old(dev, &budget);
			return true;
		}
		if (!next(q, &q->waiting, &q->cmd))
			return false;
		q->flushing = false;
		if (!begin(dev, &q->cmd, &status))
			return true;
	}
	if (!status)
		status = find(le16toh(q->cmd.hdr.opcode))->run(dev, &cpl);
	q->busy = status < 0;
	if (q->busy)
		return true;
	if (status && q->making)
		q->unmake(dev, q->making);
	q->making = NULL;
	if (dev_running(dev))
		complete(dev, &q->cmd.hdr, &cpl, status);
	return true;
}

bool cmdq_run(struct skua_dev *dev)
{
	bool any;

	if (!dev->cmdq.awake)
		return false;
	if (!take(dev) || !dev->cmdq.awake)
		return false;
	any = run_urgent(dev);
	return (dev_running(dev) && run_next(dev)) || any;
}

bool cmdq_active(const struct skua_dev *dev)
{
	return dev->cmdq.awake;
}

void cmdq_doorbell(struct skua_dev *dev)
{
	dev->cmdq.awake = true;
}
