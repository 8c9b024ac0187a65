/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages and packets that are to fail. For test_errors.c and test_answers.c.
 */
#ifndef SKUAD_HARNESS_ERRORS_H
#define SKUAD_HARNESS_ERRORS_H

#include "harness/harness.h"

/* For the lists of tests that make their worlds themselves. */
#define TABLE(f, rules) { rules ": " #f, f, NULL, NULL, NULL }

/* What a message does, and to what. */
struct message {
	uint8_t opcode;
	uint32_t len;
	uint64_t addr, raddr;		/* 0: the start of the region of a, of b */
	uint32_t recv_len;		/* b posts a receive; 0: it does not */
	uint32_t inv_key;
};

/* As post(), and with what that one does not have. */
void post_message(struct node *a, const struct node *b, const struct message *m);

/* The QP once more from INIT to RTS, by commands that the caller has changed. */
void restart(struct world *w, struct node *n, struct skua_cmd rtr, struct skua_cmd rts);

/* The train with @len bytes of payload, which the next call may use for its own. */
struct train with_payload(struct train t, uint32_t len, bool first, bool last);

#endif /* SKUAD_HARNESS_ERRORS_H */
