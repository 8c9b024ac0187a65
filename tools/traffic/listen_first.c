// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A server of perftest's with -R that listens before it says that it is ready. As it is, it makes a
 * connection for its own talk, tells the client over it to connect, and only then listens again. A
 * client that comes sooner is rejected, and dies in its second attempt, which uses what the first has
 * freed (linux-rdma/perftest issue 93). To be preloaded: LD_PRELOAD=listen_first.so ib_send_bw -R
 * This is linked to no library of its own, so that what comes between (strace) may have it, too.
 *
 * The order of its calls is: channel, id, bind, listen, the connection; channel, word to the client,
 * id, bind, listen. Here the second channel comes with an id that listens where the first did, and the
 * three calls that follow find all done.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static struct sockaddr_storage bound;	/* of the first id; family 0 before */
static enum rdma_port_space space;
static struct rdma_cm_id *ready;	/* listens, and waits for the three calls */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = REAL(rdma_create_event_channel)();

	if (!channel || !bound.ss_family || ready)
		return channel;
	if (REAL(rdma_create_id)(channel, &ready, NULL, space))
		return channel;
	if (REAL(rdma_bind_addr)(ready, (struct sockaddr *)&bound) || REAL(rdma_listen)(ready, 0)) {
		REAL(rdma_destroy_id)(ready);
		ready = NULL;
	}
	return channel;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	if (!ready || ready->channel != channel) {
		space = ps;
		return REAL(rdma_create_id)(channel, id, context, ps);
	}
	ready->context = context;
	*id = ready;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	if (id == ready)
		return 0;
	/* librdmacm itself comes by with an address of InfiniBand's, to see whether there is such. */
	if (address->sa_family == AF_INET)
		memcpy(&bound, address, sizeof(struct sockaddr_in));
	else if (address->sa_family == AF_INET6)
		memcpy(&bound, address, sizeof(struct sockaddr_in6));
	return REAL(rdma_bind_addr)(id, address);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return id == ready ? 0 : REAL(rdma_listen)(id, backlog);
}
