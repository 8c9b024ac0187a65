/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Impairments of a port: what its frames suffer on their way out and in.
 *
 * A rule is a text of KEY=VALUE with commas between: what happens, and to which frames.
 *
 *   duplicate=WHEN  corrupt=WHEN	WHEN: P% (of all), or every:N
 *   drop=WHEN[,for=TIME]	and all of that direction that the rule is for, so long
 *   ecn=WHEN[,over=TIME]	only what has to wait for the line, of a rate rule, for longer
 *   reorder=WHEN[,by=TIME]	held back by so much (100us), and overtaken
 *   delay=TIME[,jitter=TIME]	the order stays
 *   rate=BITS			a second; K, M or G may follow
 *   seed=N			of what is drawn; alone
 *
 *   dir=out|in, qp=QPN (the destination), opcode=N	only those
 *
 * corrupt flips one bit behind the MAC addresses. ecn marks packets of ECN-capable senders only.
 */
#ifndef SKUAD_LINK_IMPAIR_H
#define SKUAD_LINK_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct impair;

#define IMPAIR_RULES	16
#define IMPAIR_TEXT	96	/* bytes of a rule, NUL included */

enum impair_action {
	IMPAIR_DROP,
	IMPAIR_DUPLICATE,
	IMPAIR_CORRUPT,
	IMPAIR_ECN,
	IMPAIR_REORDER,
	IMPAIR_DELAY,
	IMPAIR_RATE,
};

#define IMPAIR_LINE_NS	100000	/* a line that is busy for longer takes no more, going out */

struct impair_rule {
	char text[IMPAIR_TEXT];
	enum impair_action action;
	bool dir[2];			/* enum impair_dir */
	bool has_qp, has_opcode;
	uint32_t qpn;
	uint8_t opcode;
	uint64_t chance;		/* of 2^32 */
	uint32_t every;			/* 0: by chance */
	uint64_t time, jitter;		/* ns: of reorder, delay, or an outage */
	uint64_t over;			/* ecn: ns */
	uint64_t drop_until[2];		/* drop: the end of an outage */
	uint64_t rate;			/* bits a second */
	uint64_t matched, acted;	/* frames */
	uint64_t idle_at[2];		/* rate: when the line has sent all that it was given */
	uint64_t queued_until[2];	/* rate: the same, if no delay rule had held frames up on their way to the line */
};

struct impair_config {
	uint64_t seed;
	bool seeded;			/* the text said so */
	unsigned int n;
	struct impair_rule rule[IMPAIR_RULES];
	uint64_t overflow;		/* frames lost because too many were held */
};

enum impair_dir { IMPAIR_OUT, IMPAIR_IN };

/* Add the rule, or the seed, that @text says. False: @err, of @err_len bytes, says what is wrong.
 * (impair_rules.c) */
bool impair_parse(struct impair_config *config, const char *text, char *err, size_t err_len);
/* Check the rules as a set, after the last of them. False: @err says what is wrong. */
bool impair_check(const struct impair_config *config, char *err, size_t err_len);

/* A frame goes on, when and as it may. False: not now, try again. (switch.c) */
typedef bool impair_emit(void *owner, enum impair_dir dir, bool packet, uint8_t *frame,
			 uint32_t len);

/* Without rules. NULL: no memory. */
struct impair *impair_create(struct engine *engine, impair_emit *emit, void *owner);
/* What is held is lost. */
void impair_destroy(struct impair *imp);

/* Other rules, or none. What is held goes on from now on, before all that comes later: some in each round of the
 * engine. */
void impair_set(struct impair *imp, const struct impair_config *config);

/* Rules and what they have done. */
const struct impair_config *impair_config(const struct impair *imp);

/* Does the line take no more for now? Asked before frames go out. */
bool impair_busy(const struct impair *imp);

/* Do frames of earlier rules still wait to go out, while no rule is left for that direction? Then it is busy, and not
 * for long. */
bool impair_ends(const struct impair *imp);

/* Must frames of this direction come here? For a rule, or because others are held. */
bool impair_has(const struct impair *imp, enum impair_dir dir);

/* A frame on its way; copied. @packet: it was built from a train. */
void impair_frame(struct impair *imp, enum impair_dir dir, bool packet, const uint8_t *frame,
		  uint32_t len);

/* In each round of the engine: let go of what is held and may go on, as far as a turn lasts. True: there was some. */
bool impair_run(struct impair *imp);

#endif /* SKUAD_LINK_IMPAIR_H */
