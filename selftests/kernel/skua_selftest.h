/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua_selftest.ko: verbs as a consumer in the kernel uses them, between skua_0 and skua_1 of one
 * machine. It is loaded by a test and by nobody else.
 *
 * debugfs/skua_selftest/run: written to, runs all tests; read, tells of them in TAP.
 * debugfs/skua_selftest/hold: written to ("direct", "softirq" or "workqueue": how CQs are polled),
 * begins traffic that goes on until one of the devices is removed, or the module, or until "end" is
 * written; read, tells how it went.
 * debugfs/skua_selftest/death: the same, but the first device is to die; "end" is written when it
 * has; read, tells what its consumers saw that they must not.
 * debugfs/skua_selftest/carrier: 1 holds up the next who says that the first NIC has a link, until
 * 0 is written; read, tells how that goes.
 * debugfs/skua_selftest/xrc: written to, does a step of a test in which a program sends to XRC SRQs
 * of the second device; read, tells the numbers of the target QP and of the SRQs, the rkey of a
 * region, and what was wrong in the last step.
 * debugfs/skua_selftest/make: written to, makes one object of each kind, and destroys them.
 */
#ifndef SKUA_SELFTEST_H
#define SKUA_SELFTEST_H

#include <linux/completion.h>
#include <linux/if_ether.h>
#include <rdma/ib_verbs.h>

#define ST_BUF_SIZE	(256 * 1024)	/* of each side; sources below the middle, targets above */
#define ST_HALF		(ST_BUF_SIZE / 2)
#define ST_WRS		16		/* in each queue */
#define ST_SGES		4
#define ST_INLINE	64		/* bytes */
#define ST_TIMEOUT	(10 * HZ)
#define ST_PSN		0xfffff0	/* the first; that of programs, too (pair.c) */

/**
 * struct st_wr - a work request that somebody waits for
 * @cqe: how its completion finds it
 * @done: there was one
 * @wc: it
 */
struct st_wr {
	struct ib_cqe cqe;
	struct completion done;
	struct ib_wc wc;
};

/**
 * struct st_side - one NIC's end of a connection
 * @dev: the NIC
 * @pd: with a key to all memory for the peer
 * @cq: of both queues
 * @qp: its QP
 * @buf: its memory, coherent
 * @dma: where the NIC finds it
 * @send: the send that is waited for
 * @recv: the receive that is waited for
 * @event: the last asynchronous event of the QP
 * @has_event: there was one
 */
struct st_side {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *buf;
	dma_addr_t dma;
	struct st_wr send;
	struct st_wr recv;
	enum ib_event_type event;
	struct completion has_event;
};

/* side.c: 0 or an errno; what fails leaves nothing behind. */
int st_to_init(struct ib_qp *qp);
int st_open(struct st_side side[2], struct ib_device *const devs[2], enum ib_poll_context poll);
void st_close(struct st_side side[2]);
/* From RESET to RTR: @qp of @side receives from QP @qpn of @peer. */
int st_listen(struct ib_qp *qp, struct st_side *side, struct st_side *peer, u32 qpn);
int st_connect(struct st_side side[2]);
/* To RESET and connected again, after an error. */
int st_reconnect(struct st_side side[2]);
/* Give a side a QP whose completions go to @cq, and connect it. The old QP is destroyed. */
int st_new_qp(struct st_side side[2], struct st_side *whose, struct ib_cq *cq,
	      const struct ib_qp_cap *cap);
/* Of each QP, as long as nobody says otherwise. */
extern const struct ib_qp_cap st_cap;

/* Of a QP whose context is a side. */
void st_event(struct ib_event *event, void *context);

void st_wr_init(struct st_wr *wr);
/* Has it completed, or does it in time? */
bool st_wait(struct st_side *side, struct st_wr *wr);
void st_fill(u8 *buf, u32 size, u8 seed);

/* Post one, with @side->recv or @side->send to wait for. The lkey is the one for all memory. */
int st_post_recv(struct st_side *side, u32 offset, u32 size);
int st_post_rdma(struct st_side *side, struct st_side *peer, enum ib_wr_opcode opcode, u32 from,
		 u32 to, u32 size, int flags);

/* Post, and wait for it. The status of its completion, or -1. */
int st_do(struct st_side *side, struct ib_send_wr *wr);

/* Ways to poll CQs, by name. */
#define ST_POLLS	3
extern const struct st_poll {
	const char *name;
	enum ib_poll_context context;
} st_polls[ST_POLLS];

#define ST_STRING(text)		#text
#define ST_WHERE(line)		" (line " ST_STRING(line) ")"
/* Of functions that return NULL, or what went wrong and where. */
#define CHECK(condition) do {							\
	if (!(condition))							\
		return #condition ST_WHERE(__LINE__);				\
} while (0)

/* tests.c: run all, telling in TAP. */
struct seq_buf;
void st_run(struct ib_device *const devs[2], struct seq_buf *tap);

/* ud.c: a QP in RTS; NULL, or what went wrong. */
struct ib_qp *st_ud_qp(struct st_side *side);
const char *st_ud(struct st_side *side);
/* The same, as a member of a multicast group; and its end: 0 or an errno. */
struct ib_qp *st_join(struct st_side *side);
int st_leave(struct ib_qp *qp);
/* The way of the side's connected QP, and its MAC. */
struct ib_ah *st_ud_ah(struct st_side *side, u8 mac[ETH_ALEN]);

/* fast.c: post REG_MR of so many pages, and wait. 0, the status of its completion, or -1. */
#define ST_FAST_PAGES	8
int st_register(struct st_side *side, struct ib_mr *mr, int access);
/* NULL, or what went wrong. */
const char *st_fast(struct st_side *side);
const char *st_fast_errors(struct st_side *side);
const char *st_fast_lists(struct st_side *side);
const char *st_fast_chain(struct st_side *side);
const char *st_fast_pieces(struct st_side *side);

/* atomic.c: the same. */
const char *st_atomics(struct st_side *side);

/* consumers.c: the same. */
const char *st_announced(struct st_side *side);
const char *st_demanded_queues(struct st_side *side);
const char *st_write_of_nothing(struct st_side *side);
const char *st_queried_caps(struct st_side *side);
const char *st_on_demand(struct st_side *side);

/* srq.c: the same. */
const char *st_srq(struct st_side *side);

/**
 * struct st_domain - an XRC domain and a target QP in it
 * @xrcd: the domain
 * @qp: the QP, in RESET at first; NULL: there is neither
 */
struct st_domain {
	struct ib_xrcd *xrcd;
	struct ib_qp *qp;
};

/* xrc.c: 0 or an errno; what fails leaves nothing behind. */
int st_domain_open(struct st_domain *domain, struct st_side *side);
int st_domain_close(struct st_domain *domain);
/* An SRQ in the domain of ST_WRS receives, which complete in @cq; or an error pointer. */
struct ib_srq *st_domain_srq(struct st_domain *domain, struct ib_pd *pd, struct ib_cq *cq,
			     void (*handler)(struct ib_event *event, void *context),
			     void *context);
/* NULL, or what went wrong. */
const char *st_xrc(struct st_side *side);

/* xrc_srq.c: a step, "open" being the first. An errno, of which -EPROTO says that it went wrong. */
int st_xrc_step(struct ib_device *const devs[2], const char *text);
/* Ends it if @dev, or NULL for any, takes part in it. */
void st_xrc_end(struct ib_device *dev);
void st_xrc_tell(struct seq_buf *out);

/* race.c: NULL, or what went wrong. */
const char *st_post_during_reset(struct st_side *side);
const char *st_post_while_polling(struct st_side *side);
/* netpoll.c: the same. */
const char *st_netpoll(struct st_side *side);
const char *st_false_wake(struct st_side *side);
const char *st_impossible(struct st_side *side);

/* make.c: 0 or an errno. */
int st_make(struct ib_device *const devs[2]);

/* hold.c */
int st_hold(struct ib_device *const devs[2], enum ib_poll_context poll);
/* Ends the traffic if @dev, or NULL for any, takes part in it. */
void st_release(struct ib_device *dev);
void st_hold_tell(struct seq_buf *out);

/* death.c */
int st_death(struct ib_device *const devs[2], enum ib_poll_context poll);
/* Ends it if @dev, or NULL for any, takes part in it. That the first device lives is a failure. */
void st_death_end(struct ib_device *dev);
void st_death_tell(struct seq_buf *out);

/* carrier.c: holds up the next who says that the NIC of @dev has a link, until the end. */
int st_carrier_hold(struct ib_device *dev);
void st_carrier_end(void);
/* Is anybody held up, and did another take the carrier away meanwhile? */
const char *st_carrier_tell(void);

#endif /* SKUA_SELFTEST_H */
