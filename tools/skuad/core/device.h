/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The inside of a device: what its objects share. All of it belongs to the engine's thread.
 */
#ifndef SKUAD_CORE_DEVICE_H
#define SKUAD_CORE_DEVICE_H

#include <assert.h>
#include <endian.h>
#include <sys/queue.h>

#include "base/engine_priv.h"
#include "base/hostmem.h"
#include "base/numtab.h"
#include "base/timer.h"
#include "core/host.h"
#include "core/inject.h"
#include "core/pages.h"
#include "link/port.h"
#include "skua/cmd.h"
#include "skua/cqe.h"
#include "skua/doorbell.h"
#include "skua/eqe.h"
#include "skua/regs.h"
#include "skua/wqe.h"

struct roce_dev;
struct sparse_table;
struct skua_qp;
struct transport_ops;

/* Limits that QUERY_DEVICE reports. */
#define LIMIT_EQ		(SKUA_NUM_VECTORS + 1)
#define LIMIT_PD		65536u
#define LIMIT_CQ		65536u
#define LIMIT_QP		65536u
#define NUM_QP_TYPES		(SKUA_QPT_ETH + 1)
#define LIMIT_MR		1048576u
#define LIMIT_LOG_CQE		20
#define LIMIT_LOG_SQ_BLOCKS	18
#define LIMIT_LOG_RQ		15
#define LIMIT_SRQ		16384u
#define LIMIT_LOG_SRQ		15
#define LIMIT_XRCD		16384u
#define LIMIT_FLOW		256u	/* a frame may be compared with all of them */
#define LIMIT_SNIFFER		8u	/* and each packet of a train copied to all of these */
#define LIMIT_RSS		1024u
#define LIMIT_COUNTER_SET	512u	/* QUERY_STATS adds them up in one step */
#define LIMIT_LOG_EQE		17
#define LIMIT_LOG_CMD		10
#define LIMIT_DB_PAGES		4096u
#define LIMIT_MW		262144u
#define LIMIT_DM		(1u << 20)	/* bytes, in whole pages */
#define LIMIT_MR_SIZE		(16ull << 40)
#define LIMIT_FAST_PAGES	4096u
#define LIMIT_FAST_PIECES	(LIMIT_FAST_PAGES / SKUA_PIECE_ENTRIES)
#define LIMIT_MSG		(1u << 31)
#define LIMIT_SGE		30
#define LIMIT_TSO		262144u
#define LIMIT_INLINE		512
#define LIMIT_RD		128
#define LIMIT_GID		256
#define LIMIT_MTU		9000u
#define PORT_MBPS		100000u
#define LIMIT_MIN_RATE		1000u	/* kb/s of a QP: a packet leaves in milliseconds, so no peer gives up */
#define LIMIT_MCAST_GROUPS	1024u
#define LIMIT_MCAST_QPS		256u	/* in a group */
#define LIMIT_CMD_TIMEOUT	5	/* seconds */
#define ECE_OPTIONS		0u	/* that peers may agree on */
#define RESERVED_LKEY		0xffffff00u

#define FEATURES_OFFERED \
	(1ull << SKUA_F_EVENT_IDX | 1ull << SKUA_F_ETHERNET | 1ull << SKUA_F_RC | \
	 1ull << SKUA_F_INVALIDATE | 1ull << SKUA_F_ATOMIC | 1ull << SKUA_F_ETH_CSUM | \
	 1ull << SKUA_F_ETH_RSS | 1ull << SKUA_F_UC | 1ull << SKUA_F_UD | 1ull << SKUA_F_SRQ | \
	 1ull << SKUA_F_XRC | 1ull << SKUA_F_MW | 1ull << SKUA_F_FAST_REG | 1ull << SKUA_F_SG_GAPS | \
	 1ull << SKUA_F_MR_MODIFY | 1ull << SKUA_F_ON_DEMAND | 1ull << SKUA_F_DM | 1ull << SKUA_F_FLUSH | 1ull << SKUA_F_ATOMIC_WRITE | \
	 1ull << SKUA_F_CQ_RESIZE | 1ull << SKUA_F_CQ_MODER | 1ull << SKUA_F_RAW_PACKET | 1ull << SKUA_F_COUNTER_SET | \
	 1ull << SKUA_F_RATE_LIMIT | 1ull << SKUA_F_ECE | 1ull << SKUA_F_MR_REVOKE | 1ull << SKUA_F_TSO | \
	 1ull << SKUA_F_IP_CSUM | 1ull << SKUA_F_TAG_MATCHING | 1ull << SKUA_F_MASKED_ATOMIC | 1ull << SKUA_F_STRIP_CVLAN)

/* Asynchronous events that wait for room, one of a kind and object at most. */
struct async_event {
	TAILQ_ENTRY(async_event) entry;
	bool queued;
	uint8_t type;			/* enum skua_event_type */
	uint32_t number;
	uint64_t handle;
};

/* An access found that this page is not there (core/odp.c). */
struct page_miss {
	uint32_t key;
	bool write;
	uint64_t addr;			/* the first byte that cannot be reached */
	uint64_t length;		/* bytes from there on that are needed */
	uint64_t last;			/* that the MR has, counted from that first one, as it may have all addresses */
};

enum page_fault_state {
	PAGE_FAULT_NONE,
	PAGE_FAULT_WAITING,		/* for the host's answer */
	PAGE_FAULT_FAILED,		/* that was its answer */
};

#define FAULT_SIDES	2		/* enum skua_page_fault_side */

/* A page fault of a QP (core/fault.c). */
struct page_fault {
	enum page_fault_state state;
	uint32_t token;			/* WAITING */
	uint8_t side;
	bool queued;			/* for room in the EQ */
	TAILQ_ENTRY(page_fault) entry;
	struct skua_qp *qp;
	struct page_miss miss;
};

struct pd {
	uint32_t number;
	uint32_t refs;			/* MRs, windows, QPs and SRQs in it */
};

struct eq {
	uint32_t number;
	uint8_t type;			/* enum skua_eq_type */
	uint16_t vector;
	uint32_t size;			/* entries */
	uint64_t pi;			/* EQEs written ever; the low bits are the index */
	uint32_t ncq;			/* CQs that map to it */
	uint32_t leavers;		/* and those that are gone, of which the host may not have consumed an EQE: */
	uint64_t leavers_pi;		/* they are before this one */
	struct pages ring;
	struct mem_ref dbr;		/* struct skua_eq_dbr */
};

/* A queue of a QP that completes into a CQ. */
struct cq_user {
	LIST_ENTRY(cq_user) entry;
	struct skua_qp *qp;		/* NULL: it is not in the list */
};

struct cq {
	uint32_t number;
	struct eq *eq;
	uint32_t size;			/* CQEs */
	uint32_t pi;
	uint32_t ci;			/* as last read */
	uint32_t db_page;
	uint32_t refs;			/* queues of QPs, and XRC SRQs, that complete into it */
	bool error;			/* overflowed or unreachable: nothing is written any more */
	bool telling;			/* that to its QPs */
	TAILQ_ENTRY(cq) failed_entry;	/* of those that are telling */
	LIST_HEAD(, cq_user) users;	/* that have not been told */
	uint32_t fired_seq;		/* of the last arming that was answered */
	uint32_t solicited_pi;		/* index behind the last solicited CQE */
	bool news, solicited_news;	/* a CQE, a solicited one, was written since it last fired */
	uint32_t hold_count;		/* CQEs that do not wait for more */
	uint64_t hold_ns;		/* that one waits at most; 0: none does */
	uint32_t hold_from;		/* armed index of the event that waits: the timer is its */
	uint32_t urgent_pi;		/* index behind the last CQE that has waited so long, or tells of an error */
	struct timer hold_timer;
	struct skua_dev *dev;
	uint64_t event_pi;		/* of its EQ, behind the last EQE that tells of it; 0: none does */
	uint64_t handle;
	struct pages ring;
	struct mem_ref dbr;		/* struct skua_cq_dbr */
	struct async_event error_event;
};

/* A memory region, or the record of a window (core/mw.h) or of device memory (core/dm.h). All that an access needs is in one cache line. */
struct mr {
	uint32_t key;
	uint8_t type;			/* enum skua_mr_type, or MR_WINDOW() */
	bool valid;			/* not invalidated, and not revoked; the rest tells of what it was last */
	uint16_t pieces;		/* FAST: that it consists of (core/gaps.h); else 0 */
	uint32_t access;
	uint32_t windows;		/* that are bound to it */
	struct pd *pd;			/* of a window: one that no QP has, nor NULL */
	uint64_t iova, length;
	struct pages pages;		/* FAST: with room for pages.n, of which not all need be in use */
};

#define MR_WINDOW(mw_type)	(MR_IS_WINDOW | (mw_type))	/* enum skua_mw_type */
#define MR_IS_WINDOW		0x80

static inline bool mr_is_window(const struct mr *mr)
{
	return mr->type & MR_IS_WINDOW;
}

struct gid_entry {
	uint8_t gid[16];
	uint8_t mac[6];
	uint16_t vlan;
	bool set;
};

/* How received frames are spread. */
struct rss {
	uint8_t key[SKUA_RSS_KEY_LEN];
	uint32_t mask;			/* entries of the table - 1 */
	uint32_t qpn[1 << SKUA_RSS_MAX_LOG];	/* 0: the port's rx_qpn */
};

/* Groups with QPs, by their address (core/mcast.c). */
#define MCAST_LOG_BUCKETS	8
#define MCAST_QPN		0xffffffu	/* destination of datagrams for a group */

LIST_HEAD(mcast_bucket, mcast_group);

struct mcast {
	uint32_t groups;
	struct mcast_bucket bucket[1 << MCAST_LOG_BUCKETS];
};

/* Commands that were copied from the ring (core/cmdq.c). */
struct taken_cmd;
STAILQ_HEAD(taken_cmds, taken_cmd);

/* A command that takes memory away for the host's memory management: it does not wait for the others. */
struct urgent_cmd {
	bool busy;			/* cmd goes on */
	bool draining;			/* the part of it that goes on */
	uint64_t ticket;		/* draining: up to here */
	struct skua_cmd cmd;
};

/* The command queue: registers, and the commands that are being carried out in steps. */
struct cmdq {
	uint64_t ring_addr, cpl_addr, dbr_addr;
	uint32_t log_size;
	struct mem_ref dbr;		/* struct skua_dbr */
	uint32_t pi, ci;		/* commands published, as last read; taken */
	uint32_t cpl_pi;
	struct taken_cmd *taken;	/* as many as the ring has entries, each in one of these lists: */
	struct taken_cmds free, waiting, urgent_waiting;
	struct urgent_cmd urgent;
	bool busy;			/* cmd goes on */
	bool draining;			/* the part of it that goes on */
	uint64_t ticket;		/* draining: up to here */
	bool flushing;			/* an SQ, up to flush_to */
	uint32_t flush_to;
	bool awake;			/* the ring is looked at */
	struct skua_cmd cmd;
	void *making;			/* an object that does not exist yet; NULL: none */
	void (*unmake)(struct skua_dev *dev, void *object);
	struct pages_load load;
};

/* Faults that were asked for (core/inject.h). */
#define INJECT_STRAYS	3

struct inject {
	uint32_t commands;		/* that will not be carried out */
	uint32_t error_in;		/* the command that fails, counted from the next; 0: none */
	uint32_t reads;			/* of registers that give all ones */
	bool gone;			/* as if pulled out */
	uint8_t guise;			/* another device that it poses as: SKUA_FAULT_*, or 0 */
	bool go_back_n;			/* as a NIC without selective repeat */
	struct async_event stray[INJECT_STRAYS];
};

/* Doorbells that bring no work (core/flood.c). */
struct flood {
	uint64_t begun;			/* of the time in which they are counted */
	uint32_t doorbells;
	uint64_t until;			/* records are looked at until then */
	uint32_t next;			/* of dev->qps: where the next look begins */
	TAILQ_HEAD(, skua_qp) kept;	/* without work, and did not ask for their doorbells */
	struct timer timer;		/* of the next look */
};

struct device_stats {
#define STATS_FIELD(name) uint64_t name;
	SKUA_STATS(STATS_FIELD)
#undef STATS_FIELD
};

struct skua_dev {
	char *name, *link_name;
	struct engine *engine;
	struct engine_client client;
	const struct skua_host_ops *ops;
	void *host;

	uint32_t status, health;	/* registers */
	uint64_t accepted;
	uint64_t features;		/* of those accepted, the ones that have all that they need */
	uint32_t clock_hi;
	bool bus_master;
	struct hostmem mem;
	struct cmdq cmdq;

	struct numtab eqs, pds, cqs, qps, mrs, srqs, xrcds, dms, flow_numbers, rsss, counter_sets;	/* mrs: windows, too */
	struct numtab faults;		/* struct page_fault, by token */
	uint64_t qp_serial;		/* of the QP that was created last */
	uint32_t num_mws;
	uint64_t dm_used;		/* bytes of LIMIT_DM */
	uint64_t pages_used, max_pages;	/* quota */
	struct old_pages *old_pages;	/* that were released, and are not freed yet; not in the quota */
	struct sparse_table *old_tables; /* the same, but in the quota */
	uint32_t num_odp_mrs;
	struct page_miss miss;		/* that the last access to memory has found */
	struct persist *persist;	/* NULL: what a guest has mapped need not persist */
	struct eq *async_eq;
	TAILQ_HEAD(, async_event) async_pending;
	bool events_due;		/* some of them may have room */
	struct eq *fault_eq;
	TAILQ_HEAD(, page_fault) faults_pending;	/* without room in it */
	bool faults_due;		/* some of them may have room */
	TAILQ_HEAD(, cq) failed_cqs;	/* with QPs that have not been told */
	struct async_event fatal_event, port_event;

	uint32_t port_flags, mtu;
	uint8_t mac[6], perm_mac[6];
	uint32_t rx_qpn;
	struct rss rss;
	struct gid_entry gids[LIMIT_GID];
	uint32_t gid_gen;		/* changes with the table */
	unsigned int gid_hint;		/* the entry that was asked for last */
	struct mcast mcast;
	TAILQ_HEAD(, flow) flows;	/* but for sniffers; the first that matches decides */
	TAILQ_HEAD(, flow) sniffers;
	uint32_t num_sniffers;
	struct link_port *port;
	const struct port_ops *port_ops;	/* of the port */
	const struct port_ops *sniffed_ops;	/* and while there are sniffers */
	const struct transport_ops *const *transports;	/* by type of QP, NUM_QP_TYPES; NULL: no such type */
	struct roce_dev *roce;		/* what its RoCE transports share (roce/roce.h) */

	TAILQ_HEAD(, skua_qp) active;	/* QPs with work, or looked at for some */
	bool refused;			/* the wire had no room for one of them */
	bool had_turn;			/* the wire took more than ACKs of that QP */
	int32_t debt;			/* of turns to come */
	struct flood flood;
	struct timer fault_timer;	/* looks for room in the fault EQ */
	struct timer err_timer;		/* looks at QPs in ERR that receives may be posted to */
	TAILQ_HEAD(, skua_qp) err_qps;
	uint32_t num_err;

	struct device_stats stats;	/* what no counter set counts */
	struct device_stats past_stats;	/* of counter sets that are gone */
	struct inject inject;
};

/* Counters are written by one thread and read by others. */
#define STATS_ADD(stats, name, n) \
	__atomic_store_n(&(stats)->name, (stats)->name + (n), __ATOMIC_RELAXED)
#define STAT_ADD(dev, name, n)		STATS_ADD(&(dev)->stats, name, n)
#define STAT_INC(dev, name)		STAT_ADD(dev, name, 1)
#define QP_STAT_ADD(qp, name, n)	STATS_ADD((qp)->stats, name, n)
#define QP_STAT_INC(qp, name)		QP_STAT_ADD(qp, name, 1)

static inline bool dev_has(const struct skua_dev *dev, unsigned int feature)
{
	return dev->features >> feature & 1;
}

static inline bool dev_running(const struct skua_dev *dev)
{
	return (dev->status & (SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL)) == SKUA_STATUS_ENABLED;
}

/* cmdq.c */
void cmdq_reset(struct skua_dev *dev);
bool cmdq_start(struct skua_dev *dev);		/* false: HEALTH says why */
bool cmdq_run(struct skua_dev *dev);		/* true if anything was done */
bool cmdq_active(const struct skua_dev *dev);
void cmdq_doorbell(struct skua_dev *dev);

/*
 * Commands, one for each opcode: take cmdq.cmd, fill @cpl, return enum skua_cmd_status, or -1
 * to be called again. Reserved fields are checked already.
 */
int cmd_query_device(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_query_port(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_set_port(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_query_stats(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_set_gid(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_set_rss(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_eq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_eq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_pd(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_pd(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_modify_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_query_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_qp(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_modify_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_invalidate_mr(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_update_pages(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_fault_resume(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_mw(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_mw(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_attach_mcast(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_detach_mcast(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_resize_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_modify_cq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_modify_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_query_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_srq(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_xrcd(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_xrcd(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_alloc_dm(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_free_dm(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_dm_copy(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_flow(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_flow(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_rss(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_rss(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_create_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_destroy_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_query_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl);
int cmd_bind_counter_set(struct skua_dev *dev, struct skua_cmd_cpl *cpl);

/* The last part of a command that takes memory away: SKUA_CMD_OK when no train refers to it any
 * more, -1 to be called again. */
int cmd_drain(struct skua_dev *dev);
int cmd_drain_urgent(struct skua_dev *dev);	/* of the urgent one */

/* Write @len bytes to the command's output buffer, or as many as it takes. */
int cmd_output(struct skua_dev *dev, struct skua_cmd_cpl *cpl, const void *out, uint32_t len);
int cmd_output_stats(struct skua_dev *dev, struct skua_cmd_cpl *cpl, const struct device_stats *stats);

/*
 * The command makes an @object, and page lists take more than one step: it is kept until the command succeeds; if it
 * fails, or the device is reset before, @unmake frees it.
 */
void cmd_makes(struct skua_dev *dev, void *object, void (*unmake)(struct skua_dev *dev, void *object));

/*
 * The page list of a ring of @size bytes whose entries are @entry bytes long: its header, its place in the quota, its
 * entries, in the order in which commands are checked (manual: CMD-11). list_load() returns -1 to be called again; a
 * list that was loaded before another of the same object is left alone. After pages_reserve(), pages_release() takes
 * all back.
 */
int ring_check(const struct skua_pagelist *list, uint64_t size, uint32_t entry);
int pages_reserve(struct skua_dev *dev, struct pages *pages, const struct skua_pagelist *list);
int pages_make_room(struct skua_dev *dev, struct pages *pages, uint32_t npages);	/* that are not known yet */
int list_load(struct skua_dev *dev, struct pages *pages, const struct skua_pagelist *list, uint64_t size, bool write);
/* A ring, or an MR's pages, to take the place of @old: the command makes it, list_load() fills it, and then it is put
 * there. */
int list_begin(struct skua_dev *dev, const struct skua_pagelist *list);
void list_replace(struct skua_dev *dev, struct pages *old);
void pages_release(struct skua_dev *dev, struct pages *pages);	/* free, maybe in steps, and give back quota */
bool pages_charge(struct skua_dev *dev, uint32_t npages);

/* Take down all objects of a kind, as far as the @budget lasts; true when none is left. */
#define FREE_COST	512
bool qp_free_all(struct skua_dev *dev, int32_t *budget);
bool srq_free_all(struct skua_dev *dev, int32_t *budget);
bool xrcd_free_all(struct skua_dev *dev, int32_t *budget);
bool flow_free_all(struct skua_dev *dev, int32_t *budget);	/* and RSS objects */
bool counter_free_all(struct skua_dev *dev, int32_t *budget);
bool mr_free_all(struct skua_dev *dev, int32_t *budget);
bool cq_free_all(struct skua_dev *dev, int32_t *budget);
bool eq_free_all(struct skua_dev *dev, int32_t *budget);
bool pd_free_all(struct skua_dev *dev, int32_t *budget);

/* eq.c */
bool eq_post_comp(struct skua_dev *dev, struct cq *cq);	/* false: it cannot be written */
/* For one more CQ, whose event has a place then (EQ-3). */
bool eq_has_room(struct skua_dev *dev, struct eq *eq);
/* The CQ goes, but not its EQE, if the host has not consumed it. */
void eq_leave(struct cq *cq);
void async_event(struct skua_dev *dev, struct async_event *event, uint8_t type,
		 uint32_t number, uint64_t handle);
void async_event_forget(struct skua_dev *dev, struct async_event *event);
void async_event_retry(struct skua_dev *dev);
#define EVENT_COST	1024	/* with an interrupt */
bool eq_post_fault(struct skua_dev *dev, struct skua_fault_eqe *eqe);	/* false: there is no room */

/* flood.c */
void flood_doorbell(struct skua_dev *dev);	/* one has come that brings no work */
void flood_bad_doorbell(struct skua_dev *dev);	/* and is ignored (DBP-1, DBP-2) */
void flood_reset(struct skua_dev *dev);

/* cq.c */
void cq_fail(struct skua_dev *dev, struct cq *cq);
bool cq_post(struct skua_dev *dev, struct cq *cq, struct skua_cqe *cqe);	/* false: the CQ is in error */
bool cq_run(struct skua_dev *dev);	/* go on with what cq_fail() has begun; true if anything was done */
void cq_join(struct cq *cq, struct cq_user *user, struct skua_qp *qp);
void cq_leave(struct cq_user *user);
void cq_arm_doorbell(struct skua_dev *dev, uint32_t cqn, uint32_t db_page);

/* mr.c: rights and places of memory. */
struct mem_access {
	struct pd *pd;
	bool privileged;
	uint32_t need;		/* SKUA_ACCESS_* */
	const struct skua_qp *qp;	/* whose peer it is; NULL: the host itself */
};

/* Placements that a FLUSH of a peer may ask for. */
static inline uint32_t flush_caps(const struct skua_dev *dev)
{
	return SKUA_FLUSH_GLOBAL | (dev->persist ? SKUA_FLUSH_PERSISTENT : 0);
}

/* Does a FLUSH ask for what there is? */
static inline bool flush_valid(uint32_t flush)
{
	return flush & SKUA_FLUSH_PLACEMENTS && !(flush & ~(uint32_t)(SKUA_FLUSH_PLACEMENTS | SKUA_FLUSH_MR));
}

/* The rights for a FLUSH to these placements. */
static inline uint32_t flush_rights(uint32_t flush)
{
	static_assert(SKUA_FLUSH_GLOBAL << 8 == SKUA_ACCESS_FLUSH_GLOBAL &&
		      SKUA_FLUSH_PERSISTENT << 8 == SKUA_ACCESS_FLUSH_PERSISTENT, "rights are in the order of placements");

	return (flush & SKUA_FLUSH_PLACEMENTS) << 8;
}

/* Returns enum skua_vendor_err; on SKUA_VENDOR_ERR_NONE [@addr, @addr + @len) may be used. */
int mr_check(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr,
	     uint64_t len);
#define LOOKS_AHEAD	1024u	/* pages that have to be present before a READ begins; more may come later */
#define PAGE_COST	16	/* a look at one, of a turn */
/* The same, and pages on demand that will be needed soon are there. @looks: how many may be looked at; less those that were. */
int mr_check_present(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr, uint64_t len,
		     uint32_t *looks);
/* The same of the whole region. */
int mr_check_key(struct skua_dev *dev, const struct mem_access *access, uint32_t key);
/* As mr_check(), and the runs of memory there are appended to @segs. */
int mr_segs(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr,
	    uint32_t len, struct seglist *segs);

/* All addresses of the region with @key; if there is none, none that it could have. */
void mr_range(struct skua_dev *dev, uint32_t key, uint64_t *addr, uint64_t *len);
/*
 * As mr_check(), of a region with the right to FLUSH to persistence, but for bytes that have no place; and the first run of
 * memory there.
 */
int mr_run(struct skua_dev *dev, const struct mem_access *access, uint32_t key, uint64_t addr, uint64_t len, uint8_t **at,
	   uint64_t *run);

/* mr.c: what memory regions and windows have in common. */
#define REMOTE_RIGHTS	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)
bool mr_add_key(struct skua_dev *dev, struct mr *mr);	/* false: there is no room */
bool mr_access_valid(const struct skua_dev *dev, uint32_t access);
uint32_t mr_remote_rights(const struct skua_dev *dev);	/* those that there are: SKUA_ACCESS_* */
bool mr_range_valid(uint64_t iova, uint64_t length);
/* Range and header of the page list of an MR, or of none if @length is 0: enum skua_cmd_status. */
int mr_list_check(uint64_t iova, uint64_t length, const struct skua_pagelist *list);
/* Append the runs of DMA addresses; enum skua_vendor_err. */
int hostmem_segs(struct hostmem *m, uint64_t addr, uint32_t len, bool write, struct seglist *segs);

/* fast.c: what WQEs and peers do to MRs of type FAST, and to windows. These return enum skua_vendor_err. */
bool mr_reg_valid(const struct skua_dev *dev, const struct skua_wqe_reg_mr *reg);	/* its fields, by themselves */
int mr_register(struct skua_dev *dev, struct pd *pd, bool privileged, const struct skua_wqe_reg_mr *reg);
int mr_invalidate(struct skua_qp *qp, uint32_t key, bool by_peer);

/* port.c */
void port_reset(struct skua_dev *dev);
/* No frames for this QP any more. */
void port_forget_qp(struct skua_dev *dev, uint32_t qpn);

/* mcast.c: the group with QPs that a packet on @path is for, or NULL; the packet. */
struct mcast_group *mcast_find(struct skua_dev *dev, const struct roce_path *path);
void mcast_rx(struct skua_dev *dev, const struct mcast_group *group, const struct train *t);

#endif /* SKUAD_CORE_DEVICE_H */
