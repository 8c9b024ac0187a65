// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * librpma between two hosts: writes, each followed by a flush to global visibility, atomic writes, reads. The client
 * compares what it reads back, and the server its memory in the end.
 *
 * usage: rpma serve ADDRESS PORT              one client
 *        rpma use ADDRESS PORT [SECONDS]      one round, or rounds for so long
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE	(1u << 20)	/* of the server's memory: a number of 8 bytes, and data */
#define DATA	64u		/* where the data begin */
#define LENGTH	(SIZE - DATA)
#define PIECES	16u

#define MUST(call) must(call, #call)

static void must(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(error));
	exit(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static unsigned char byte_at(size_t at, uint64_t round)
{
	return (at * 2654435761u + round * 40503u) >> 11;
}

static int has_data_of(const unsigned char *bytes, uint64_t round)
{
	for (size_t i = 0; i < LENGTH; i++)
		if (bytes[i] != byte_at(i, round))
			return 0;
	return 1;
}

static struct rpma_peer *new_peer(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context;
	struct rpma_peer *peer;

	MUST(rpma_utils_get_ibv_context(address, type, &context));
	MUST(rpma_peer_new(context, &peer));
	return peer;
}

static struct rpma_mr_local *reg(struct rpma_peer *peer, void **memory, int usage)
{
	struct rpma_mr_local *mr;

	if (posix_memalign(memory, 4096, SIZE))
		wrong("no memory");
	memset(*memory, 0, SIZE);
	MUST(rpma_mr_reg(peer, *memory, SIZE, usage, &mr));
	return mr;
}

static void expect(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	MUST(rpma_conn_next_event(conn, &event));
	if (event == wanted)
		return;
	fprintf(stderr, "%s instead of %s\n", rpma_utils_conn_event_2str(event), rpma_utils_conn_event_2str(wanted));
	exit(1);
}

static void serve(const char *address, const char *port)
{
	struct rpma_peer *peer = new_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	unsigned char descriptor[64];
	struct rpma_conn_private_data data = { .ptr = descriptor };
	struct rpma_conn_req *request;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	struct rpma_ep *ep;
	uint64_t *memory;
	size_t length;

	mr = reg(peer, (void **)&memory, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
		 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	MUST(rpma_mr_get_descriptor_size(mr, &length));
	if (length > sizeof(descriptor))
		wrong("the descriptor is longer than expected");
	MUST(rpma_mr_get_descriptor(mr, descriptor));
	data.len = length;
	MUST(rpma_ep_listen(peer, address, port, &ep));
	MUST(rpma_ep_next_conn_req(ep, NULL, &request));
	MUST(rpma_conn_req_connect(&request, &data, &conn));
	expect(conn, RPMA_CONN_ESTABLISHED);
	expect(conn, RPMA_CONN_CLOSED);
	if (!memory[0] || !has_data_of((unsigned char *)memory + DATA, memory[0]))
		wrong("the memory differs from what the client has written");
	printf("the memory is that of round %llu\n", (unsigned long long)memory[0]);
	MUST(rpma_conn_disconnect(conn));
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_ep_shutdown(&ep));
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
}

static void complete(struct rpma_conn *conn)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	MUST(rpma_conn_get_cq(conn, &cq));
	MUST(rpma_cq_wait(cq));
	MUST(rpma_cq_get_wc(cq, 1, &wc, NULL));
	if (wc.status)
		wrong(ibv_wc_status_str(wc.status));
	/* What was waited for is the only completion. */
	if (rpma_cq_get_wc(cq, 1, &wc, NULL) != RPMA_E_NO_COMPLETION)
		wrong("a completion too many");
}

/* The data in pieces, then their round's number, each visible before the next is written. */
static void one_round(struct rpma_conn *conn, struct rpma_mr_remote *remote, struct rpma_mr_local *mr,
		      unsigned char *memory, uint64_t round)
{
	for (size_t i = 0; i < LENGTH; i++)
		memory[DATA + i] = byte_at(i, round);
	for (unsigned int i = 0; i < PIECES; i++) {
		size_t from = DATA + LENGTH / PIECES * i, to = i < PIECES - 1 ? from + LENGTH / PIECES : SIZE;

		MUST(rpma_write(conn, remote, from, mr, from, to - from, RPMA_F_COMPLETION_ON_ERROR, NULL));
		MUST(rpma_flush(conn, remote, from, to - from, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL));
		complete(conn);
	}
	MUST(rpma_atomic_write(conn, remote, 0, (char *)&round, RPMA_F_COMPLETION_ALWAYS, NULL));
	complete(conn);
	memset(memory, 0, SIZE);
	MUST(rpma_read(conn, mr, 0, remote, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, NULL));
	complete(conn);
	if (memcmp(memory, &round, sizeof(round)) || !has_data_of(memory + DATA, round))
		wrong("what was read differs from what was written");
}

static void use(const char *address, const char *port, int seconds)
{
	struct rpma_peer *peer = new_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	time_t end = time(NULL) + seconds;
	struct rpma_conn_private_data data;
	struct rpma_mr_remote *remote;
	struct rpma_conn_req *request;
	struct rpma_mr_local *mr;
	struct rpma_conn *conn;
	uint64_t round = 0;
	void *memory;

	mr = reg(peer, &memory, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC);
	MUST(rpma_conn_req_new(peer, address, port, NULL, &request));
	MUST(rpma_conn_req_connect(&request, NULL, &conn));
	expect(conn, RPMA_CONN_ESTABLISHED);
	MUST(rpma_conn_get_private_data(conn, &data));
	MUST(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote));
	do {
		one_round(conn, remote, mr, memory, ++round);
	} while (time(NULL) < end);
	printf("%llu rounds\n", (unsigned long long)round);
	MUST(rpma_conn_disconnect(conn));
	expect(conn, RPMA_CONN_CLOSED);
	MUST(rpma_mr_remote_delete(&remote));
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], argv[3]);
	else if ((argc == 4 || argc == 5) && !strcmp(argv[1], "use"))
		use(argv[2], argv[3], argc == 5 ? atoi(argv[4]) : 0);
	else
		return 2;
	return 0;
}
