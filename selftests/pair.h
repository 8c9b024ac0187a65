/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two NICs under one program: what tests of verbs between skua_0 and skua_1 share. All functions
 * that make something return NULL or a negative errno on failure and leave nothing behind.
 */
#ifndef SELFTESTS_PAIR_H
#define SELFTESTS_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

/* Instead of the kselftest harness's: a debug kernel on a busy machine needs as many seconds. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	180

#define PAIR_MEM	(4u << 20)	/* bytes of each side's memory */
#define PAIR_WRS	16		/* in each queue */
#define PAIR_SGES	4
#define PAIR_READS	4		/* outstanding at once */

/* One NIC. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;		/* over mem, with all rights */
	uint8_t *mem;
	union ibv_gid gid;
	uint8_t gid_index;
	struct ibv_qp *qp;
};

/* Open a device by name; no QP yet. */
int side_open(struct side *side, const char *name);
void side_close(struct side *side);

/* Use the GID of its IPv6 address, or again that of its IPv4 address. 0 or -ENOENT. */
int side_use_gid(struct side *side, bool ipv6);

/* If skua_0 dies, it stays dead: devlink does not recover it by itself. 0, or not if that failed. */
int nic_stays_dead(void);

/* A counter of the NIC's, by name; -1: there is none. */
int64_t side_counter(const struct side *side, const char *name);

/* An RC QP in RESET with queues of PAIR_WRS. Its sends are signalled only if asked for. */
struct ibv_qp *side_create_qp(struct side *side);
struct ibv_qp *side_create_qp_of(struct side *side, enum ibv_qp_type type);

/* The way from a side to a GID. */
struct ibv_ah_attr side_ah(const struct side *side, const union ibv_gid *dgid);

/* RESET to INIT, to RTR towards a peer, to RTS. 0 or an errno. */
int qp_to_init(struct ibv_qp *qp, unsigned int access);
int qp_to_rtr(struct ibv_qp *qp, const struct side *side, const struct side *peer, uint32_t peer_qpn);
int qp_to_rts(struct ibv_qp *qp, uint8_t timeout, uint8_t retry_cnt, uint8_t rnr_retry);

/* UD: from RESET to RTS. 0 or an errno. */
int qp_ud_to_rts(struct ibv_qp *qp, uint32_t qkey);

enum ibv_qp_state qp_state(struct ibv_qp *qp);

/* The same with another number of READs and atomics outstanding. */
int qp_to_rtr_deep(struct ibv_qp *qp, const struct side *side, const struct side *peer,
		   uint32_t peer_qpn, uint8_t reads);
int qp_to_rts_deep(struct ibv_qp *qp, uint8_t timeout, uint8_t retry_cnt, uint8_t rnr_retry,
		   uint8_t reads);

/* Open both NICs; each has a QP of a type, in RESET. */
int pair_open_of(struct side sides[2], enum ibv_qp_type type);

/* The same with RC QPs, connected with each other, all rights given. */
int pair_open(struct side sides[2]);
void pair_close(struct side sides[2]);

/* Both QPs from whatever state they are in to RTS again, nothing left in their CQs. 0 or -errno. */
int pair_reconnect(struct side sides[2]);

/*
 * A WRITE there, a READ back and a SEND there, all their data compared. False: one of them went
 * wrong. The pair's queues are empty.
 */
bool pair_transfer(struct side sides[2]);

/* Bytes that tell where they belong, and to which seed. */
void pair_fill(uint8_t *bytes, size_t size, uint8_t seed);

/* Wait at most some seconds for the next completion. False: none came. */
bool side_wait(struct side *side, struct ibv_wc *wc, unsigned int seconds);

/* Post one request. 0, an errno, or -1: something else was called bad. */
int side_post(struct side *side, struct ibv_send_wr *wr);

/* Of a clock that only goes forward. */
int64_t now_ns(void);

/* These return NULL, or what went wrong. */

/* Post one request, which completes well. */
const char *side_sends(struct side *side, struct ibv_send_wr *wr);

/*
 * One operation of the first side, RC or UC, with a receive of the other where it takes one; its bytes
 * are at @from before and at @to afterwards, one more than @size of them in reach.
 */
const char *pair_message(struct side sides[2], enum ibv_wr_opcode opcode, uint8_t *from, uint8_t *to,
			 uint32_t size);

/* The first side, UC or UD, sends what the other drops and counts; this is of no consequence to either. */
const char *pair_drops(struct side sides[2], const char *counter, struct ibv_send_wr *wr);

/* Nothing went wrong in one of them. */
#define WELL(call) do {							\
	const char *wrong_ = (call);					\
									\
	ASSERT_EQ(NULL, wrong_) {					\
		TH_LOG("%s", wrong_);					\
	}								\
} while (0)

#endif
