/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two threads that give back what a client handed over: one closes descriptors, the other unmaps files. Each device has
 * a closer, and so has each link that is a unix socket, for its peer. A thread starts when there is something for it to
 * do. All functions are called on the engine's thread, or while the engine does not run, and none of them waits for
 * anything of a client's.
 */
#ifndef SKUAD_BASE_CLOSER_H
#define SKUAD_BASE_CLOSER_H

#include <stdbool.h>
#include <stdint.h>

struct closer;

/*
 * The most descriptors that one sendmsg() sends (SCM_MAX_FD of Linux). What finds no room in the control buffer of a
 * receive is closed by the kernel on the thread that receives.
 */
#define CLOSER_MSG_FDS	253

/*
 * @room: descriptors and files that may come after closer_is_full() was false, before it is asked again. NULL: there is
 * no memory.
 */
struct closer *closer_create(unsigned int room);
/* Waits until everything is given back, but not long: the threads go on alone if they have to. */
void closer_destroy(struct closer *c);

/* Takes over the descriptor @fd, and closes it. */
void closer_fd(struct closer *c, int fd);

/*
 * Takes over the connected socket @fd. The peer finds its end at once; then the socket is closed (farewell.h). @fd may
 * also listen: then whoever connects is refused from now on, and what clients have sent that nobody has accepted goes.
 */
void closer_connection(struct closer *c, int fd);

/* Unmaps @size bytes at @base, a whole mapping of pages of @page bytes. */
void closer_unmap(struct closer *c, void *base, uint64_t size, uint64_t page);

/*
 * So much waits that nothing may be received or accepted for its owner now.
 */
bool closer_is_full(const struct closer *c);

/* Bytes that are still mapped and wait to be unmapped. */
uint64_t closer_bytes(const struct closer *c);

#endif /* SKUAD_BASE_CLOSER_H */
