/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A capture: a pcapng stream of what a port sends and receives.
 *
 * Made and ended on any thread; written on the threads of the engines whose ports it is
 * set on. A reader that is too slow, or a full disk, ends the capture, never the device.
 */
#ifndef SKUAD_LINK_CAPTURE_H
#define SKUAD_LINK_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/seg.h"
#include "roce/train.h"

struct capture;

/* Write to @fd, which the capture owns from now on; @name is the interface's name in the
 * file. NULL with errno set. */
struct capture *capture_open(int fd, const char *name);
/* Ends it: whole blocks only stand in the file. Returns the packets written, and those lost
 * because the reader was too slow. */
void capture_close(struct capture *cap, uint64_t *written, uint64_t *lost);

/* One Ethernet frame, or a train cut into its packets; @out: sent by the port. @ns is
 * nanoseconds since the epoch. */
void capture_frame(struct capture *cap, bool out, uint64_t ns, const struct seglist *frame);
void capture_train(struct capture *cap, bool out, uint64_t ns, const struct train *t);

#endif /* SKUAD_LINK_CAPTURE_H */
