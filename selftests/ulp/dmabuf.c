// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dma-bufs of skua_exporter.ko between two hosts. The client WRITEs from one of its own to the server's, READs that into
 * another one, and compares. The server compares its dma-buf in the end.
 *
 * usage: dmabuf serve ADDRESS PORT              one client
 *        dmabuf use ADDRESS PORT [SECONDS]      one round, or rounds for so long
 */
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../dmabuf.h"

#define SIZE	(1u << 20)

/* What the server tells its client. */
struct offer {
	uint64_t iova;
	uint32_t rkey;
};

struct buffer {
	uint8_t *mem;
	struct ibv_mr *mr;
	int fd;
};

#define MUST(good) must(good, #good)

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "not so: %s (%s)\n", what, strerror(errno));
	exit(1);
}

/* A dma-buf, and its MR, whose addresses begin with 0. */
static struct buffer new_buffer(struct ibv_pd *pd)
{
	struct buffer buffer = { .fd = export_buffer(SIZE, 0, 0) };

	MUST(buffer.fd >= 0);
	buffer.mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd, 0);
	MUST(buffer.mem != MAP_FAILED);
	buffer.mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, buffer.fd,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	MUST(buffer.mr);
	return buffer;
}

static void free_buffer(struct buffer buffer)
{
	MUST(!ibv_dereg_mr(buffer.mr));
	munmap(buffer.mem, SIZE);
	close(buffer.fd);
}

static uint64_t word_at(uint32_t at, uint64_t round)
{
	return (at + 1) * 0x9e3779b97f4a7c15u ^ round;
}

/* The first word is the number of the round. */
static void fill(uint8_t *mem, uint64_t round)
{
	uint64_t *words = (uint64_t *)mem;

	words[0] = round;
	for (uint32_t i = 1; i < SIZE / 8; i++)
		words[i] = word_at(i, round);
}

static bool is_filled(const uint8_t *mem, uint64_t round)
{
	const uint64_t *words = (const uint64_t *)mem;

	for (uint32_t i = 1; i < SIZE / 8; i++)
		if (words[i] != word_at(i, round))
			return false;
	return words[0] == round;
}

static struct rdma_cm_id *new_id(const char *address, const char *port, int flags)
{
	struct rdma_addrinfo *found, hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	MUST(!rdma_getaddrinfo(address, port, &hints, &found));
	MUST(!rdma_create_ep(&id, found, NULL, &attr));
	rdma_freeaddrinfo(found);
	return id;
}

static void serve(const char *address, const char *port)
{
	struct rdma_cm_id *listener = new_id(address, port, RAI_PASSIVE), *id;
	struct rdma_conn_param param = { .responder_resources = 1, .rnr_retry_count = 7 };
	struct offer offer;
	struct buffer buffer;
	struct ibv_wc wc;

	MUST(!rdma_listen(listener, 1));
	MUST(!rdma_get_request(listener, &id));
	buffer = new_buffer(id->pd);
	offer = (struct offer){ .rkey = buffer.mr->rkey };
	param.private_data = &offer;
	param.private_data_len = sizeof(offer);
	MUST(!rdma_post_recvv(id, NULL, NULL, 0));
	MUST(!rdma_accept(id, &param));
	/* The client's last message. */
	MUST(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	MUST(is_filled(buffer.mem, *(uint64_t *)buffer.mem));
	free_buffer(buffer);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void must_complete(struct rdma_cm_id *id, int err)
{
	struct ibv_wc wc;

	MUST(!err);
	MUST(rdma_get_send_comp(id, &wc) == 1);
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void use(const char *address, const char *port, time_t seconds)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id = new_id(address, port, 0);
	struct buffer from = new_buffer(id->pd), to = new_buffer(id->pd);
	const time_t end = time(NULL) + seconds;
	struct offer offer;
	uint64_t round = 0;

	MUST(!rdma_connect(id, &param));
	MUST(id->event->param.conn.private_data_len >= sizeof(offer));
	memcpy(&offer, id->event->param.conn.private_data, sizeof(offer));
	do {
		fill(from.mem, ++round);
		must_complete(id, rdma_post_write(id, NULL, NULL, SIZE, from.mr, 0, offer.iova, offer.rkey));
		must_complete(id, rdma_post_read(id, NULL, NULL, SIZE, to.mr, 0, offer.iova, offer.rkey));
		MUST(is_filled(to.mem, round));
	} while (time(NULL) < end);
	must_complete(id, rdma_post_sendv(id, NULL, NULL, 0, 0));
	printf("%llu rounds\n", (unsigned long long)round);
	free_buffer(from);
	free_buffer(to);
	rdma_disconnect(id);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve")) {
		serve(argv[2], argv[3]);
	} else if (argc >= 4 && !strcmp(argv[1], "use")) {
		use(argv[2], argv[3], argc > 4 ? atoi(argv[4]) : 0);
	} else {
		fprintf(stderr, "usage: dmabuf serve ADDRESS PORT | use ADDRESS PORT [SECONDS]\n");
		return 2;
	}
	return 0;
}
