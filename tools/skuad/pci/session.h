/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What one client asks, and the answers: the commands of vfio-user. On the engine's thread.
 */
#ifndef SKUAD_PCI_SESSION_H
#define SKUAD_PCI_SESSION_H

#include <stdbool.h>

#include "pci/channel.h"
#include "pci/dma.h"
#include "pci/function.h"

struct session {
	struct channel channel;
	struct function *fn;
	struct dma *dma;
	bool greeted;		/* VERSION was agreed */
	bool left;		/* messages that were received may be left */
	struct {		/* a DMA_UNMAP that takes several steps */
		bool busy;
		struct vfio_user_hdr hdr;
		struct vfio_user_dma_unmap body;
		uint64_t first, last, done;
	} unmap;
	char fault[192];	/* why the session must end, or "" */
};

/* Serves the client on the connected socket @fd, which is taken over. */
void session_begin(struct session *s, struct function *fn, struct dma *dma, int fd);

/*
 * Receives once and serves what came, as much as fits in a step. True while the session goes on; false if it is over:
 * s->fault says why, "" if the client left in peace. Not to be called while the closer is full, unless it is busy.
 */
bool session_serve(struct session *s);

/* It has to be served again, though nothing comes. */
static inline bool session_is_busy(const struct session *s)
{
	return s->left || s->unmap.busy;
}

/*
 * Serves what the client has sent, and no more: it need not wait for a reply that never comes. It stops at a closer
 * that is full.
 */
void session_finish(struct session *s);

/* Lets go of the client, and of all that it gave: memory and eventfds. The function is as
 * after power-on. */
void session_end(struct session *s);

#endif /* SKUAD_PCI_SESSION_H */
