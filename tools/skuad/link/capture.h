/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A capture: a pcapng stream of what a port sends and receives.
 *
 * Made and ended on any thread; written on the threads of the engines whose ports it is
 * set on. None of them waits for the reader: one that is too slow loses packets, one that is
 * gone, or a full disk, ends the capture.
 */
#ifndef SKUAD_LINK_CAPTURE_H
#define SKUAD_LINK_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/seg.h"
#include "packet/train.h"

struct capture;

/* Write to @fd, which the capture owns from now on; @name is the interface's name in the
 * file. NULL with errno set, then @fd is still the caller's. */
struct capture *capture_open(int fd, const char *name);
/* Ends it, once it is set on no port any more: whole blocks only stand in the file. Returns
 * the packets written, and those lost because the reader was too slow. A pipe's reader gets
 * CAPTURE_PATIENCE_MS to take what is still there. */
void capture_close(struct capture *cap, uint64_t *written, uint64_t *lost);
#define CAPTURE_PATIENCE_MS	1000

/* A descriptor that becomes readable when the capture has ended by itself; capture_error()
 * then says why, as an errno. The capture must be closed all the same. */
int capture_event_fd(const struct capture *cap);
int capture_error(const struct capture *cap);

/* One Ethernet frame, or a train cut into its packets; @out: sent by the port. @ns is
 * nanoseconds since the epoch. */
void capture_frame(struct capture *cap, bool out, uint64_t ns, const struct seglist *frame);
void capture_train(struct capture *cap, bool out, uint64_t ns, const struct train *t);

#endif /* SKUAD_LINK_CAPTURE_H */
