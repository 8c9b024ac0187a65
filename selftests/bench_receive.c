// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an SRQ costs: skua_0 sends small messages to skua_1 over as many QPs as there are clients, which
 * receive from one SRQ or from an RQ each.
 *
 *   bench_receive CLIENTS MESSAGES
 *
 * Both ways take turns, ROUNDS times. It prints a line for each turn: "rq" or "srq", and messages a second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pair.h"

#define ROUNDS	5
#define DEPTH	16		/* messages under way on a QP, and receives for each of them */
#define SIZE	64		/* bytes of a message */
#define BATCH	64		/* CQEs that are polled at once */

struct bench {
	struct side sides[2];
	unsigned int clients;
	struct ibv_cq *cqs[2];		/* of the sends, and of the receives */
	struct ibv_srq *srq;		/* NULL: each QP has an RQ */
	struct ibv_qp **senders, **receivers;
};

static void fails(const char *what)
{
	fprintf(stderr, "bench_receive: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Receives name the client by wr_id, but those of an SRQ, which go back to it. */
static void post_receive(struct bench *bench, unsigned int client)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)bench->sides[1].mem, .length = SIZE, .lkey = bench->sides[1].mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = client, .sg_list = &sge, .num_sge = 1 };

	if (bench->srq ? ibv_post_srq_recv(bench->srq, &wr, &bad) :
			 ibv_post_recv(bench->receivers[client], &wr, &bad))
		fails("posting a receive");
}

/* Of DEPTH messages the last one is signalled. */
static void post_sends(struct bench *bench, unsigned int client)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)bench->sides[0].mem, .length = SIZE, .lkey = bench->sides[0].mr->lkey,
	};
	struct ibv_send_wr *bad, wrs[DEPTH] = {};

	for (int i = 0; i < DEPTH; i++)
		wrs[i] = (struct ibv_send_wr) {
			.wr_id = client, .next = i + 1 < DEPTH ? &wrs[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = i + 1 < DEPTH ? 0 : IBV_SEND_SIGNALED,
		};
	if (ibv_post_send(bench->senders[client], wrs, &bad))
		fails("posting sends");
}

static struct ibv_qp *create_qp(struct bench *bench, unsigned int which)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = bench->cqs[which], .recv_cq = bench->cqs[which],
		.srq = which ? bench->srq : NULL, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_recv_wr = DEPTH, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(bench->sides[which].pd, &attr);

	if (!qp)
		fails("ibv_create_qp");
	return qp;
}

static void set_up(struct bench *bench, bool srq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = bench->clients * DEPTH, .max_sge = 1 } };
	struct side *sides = bench->sides;

	for (int i = 0; i < 2; i++) {
		bench->cqs[i] = ibv_create_cq(sides[i].context, bench->clients * DEPTH, NULL, NULL, 0);
		if (!bench->cqs[i])
			fails("ibv_create_cq");
	}
	bench->srq = srq ? ibv_create_srq(sides[1].pd, &attr) : NULL;
	if (srq && !bench->srq)
		fails("ibv_create_srq");
	for (unsigned int n = 0; n < bench->clients; n++) {
		struct ibv_qp *from = create_qp(bench, 0), *to = create_qp(bench, 1);

		bench->senders[n] = from;
		bench->receivers[n] = to;
		if (qp_to_init(from, 0) || qp_to_init(to, 0) ||
		    qp_to_rtr(from, &sides[0], &sides[1], to->qp_num) ||
		    qp_to_rtr(to, &sides[1], &sides[0], from->qp_num) ||
		    qp_to_rts(from, 14, 7, 7) || qp_to_rts(to, 14, 7, 7))
			fails("ibv_modify_qp");
		for (int i = 0; i < DEPTH; i++)
			post_receive(bench, n);
	}
}

static void tear_down(struct bench *bench)
{
	for (unsigned int n = 0; n < bench->clients; n++)
		if (ibv_destroy_qp(bench->senders[n]) || ibv_destroy_qp(bench->receivers[n]))
			fails("ibv_destroy_qp");
	if (bench->srq && ibv_destroy_srq(bench->srq))
		fails("ibv_destroy_srq");
	if (ibv_destroy_cq(bench->cqs[0]) || ibv_destroy_cq(bench->cqs[1]))
		fails("ibv_destroy_cq");
}

/* The CQEs of one side that are there now. */
static int poll(struct bench *bench, unsigned int which, struct ibv_wc *wcs, int most)
{
	int n = ibv_poll_cq(bench->cqs[which], most, wcs);

	for (int i = 0; i < n; i++)
		if (wcs[i].status) {
			fprintf(stderr, "bench_receive: %s\n", ibv_wc_status_str(wcs[i].status));
			exit(1);
		}
	if (n < 0)
		fails("ibv_poll_cq");
	return n;
}

/* Messages a second. */
static double run(struct bench *bench, unsigned long messages)
{
	unsigned long posted = 0, received = 0;
	struct ibv_wc sent[BATCH], wcs[BATCH];
	double start = now();

	for (unsigned int n = 0; n < bench->clients; n++, posted += DEPTH)
		post_sends(bench, n);
	while (received < posted) {
		int done = poll(bench, 0, sent, BATCH), n;

		/* Whatever these sends took is posted again before the next ones: no receive is missing. */
		do {
			n = poll(bench, 1, wcs, BATCH);
			for (int i = 0; i < n; i++)
				post_receive(bench, (unsigned int)wcs[i].wr_id);
			received += n;
		} while (n == BATCH);
		for (int i = 0; i < done && posted < messages; i++, posted += DEPTH)
			post_sends(bench, (unsigned int)sent[i].wr_id);
	}
	return received / (now() - start);
}

int main(int argc, char **argv)
{
	struct bench bench = {};
	unsigned long messages;

	if (argc != 3) {
		fputs("usage: bench_receive CLIENTS MESSAGES\n", stderr);
		return 2;
	}
	bench.clients = (unsigned int)strtoul(argv[1], NULL, 0);
	messages = strtoul(argv[2], NULL, 0);
	bench.senders = calloc(bench.clients, sizeof(*bench.senders));
	bench.receivers = calloc(bench.clients, sizeof(*bench.receivers));
	if (!bench.senders || !bench.receivers)
		fails("calloc");
	for (int i = 0; i < 2; i++)
		if (side_open(&bench.sides[i], i ? "skua_1" : "skua_0"))
			fails("opening the NICs");
	for (int round = 0; round < 2 * ROUNDS; round++) {
		set_up(&bench, round % 2);
		printf("%s %.0f\n", round % 2 ? "srq" : "rq", run(&bench, messages));
		tear_down(&bench);
	}
	side_close(&bench.sides[0]);
	side_close(&bench.sides[1]);
	free(bench.senders);
	free(bench.receivers);
	return 0;
}
