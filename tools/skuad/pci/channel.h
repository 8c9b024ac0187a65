/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection as a sequence of messages with their file descriptors. Nothing here blocks,
 * and nothing allocates. One thread.
 */
#ifndef SKUAD_PCI_CHANNEL_H
#define SKUAD_PCI_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "pci/vfio_user_proto.h"

#define CHANNEL_RX_SIZE		16384

struct closer;

struct channel {
	int fd;				/* -1: not connected */
	struct closer *closer;		/* of descriptors that nobody keeps */
	size_t head, tail;		/* what of rx is received and not yet served */
	int fds[VFIO_USER_MAX_FDS];	/* received, belonging to the message that has */
	unsigned int nfds;		/* the byte before fds_end */
	size_t fds_end;
	int msg_fds[VFIO_USER_MAX_FDS];	/* of the message that is being served */
	unsigned int msg_nfds;
	_Alignas(8) uint8_t rx[CHANNEL_RX_SIZE];
};

/* A message, good until the next channel_next() or channel_close(). Whoever keeps one of its
 * descriptors puts -1 in its place; the others are closed. */
struct channel_msg {
	struct vfio_user_hdr hdr;
	const uint8_t *body;		/* not aligned */
	size_t len;
	int *fds;
	unsigned int nfds;
};

void channel_init(struct channel *ch);

/* Takes over the connected socket @fd. */
void channel_open(struct channel *ch, int fd, struct closer *closer);
void channel_close(struct channel *ch);

/* The peer can send nothing more; what it has sent can be received, and answered. */
void channel_stop(struct channel *ch);

/*
 * Receives once what there is. 1: something came; 0: nothing there; negative: the connection
 * is over, *why says how, or is NULL if the peer left between two messages. Not to be called while
 * the closer is full.
 */
int channel_receive(struct channel *ch, const char **why);

/* The next whole message. 1: it is in *msg; 0: there is none yet; negative: what came is not
 * a message, *why says why. */
int channel_next(struct channel *ch, struct channel_msg *msg, const char **why);

/* Sends @len bytes at once, or fails: -EAGAIN if the peer has left no room for them. */
int channel_send(struct channel *ch, const void *data, size_t len);

#endif /* SKUAD_PCI_CHANNEL_H */
