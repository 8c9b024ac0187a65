/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How connections to QEMU end: as a closed one, never as a reset one.
 *
 * The kernel resets a unix connection that is closed before all that the peer has sent was read: the peer reads
 * ECONNRESET instead of the end of file. QEMU (up to 11.1 at least) does not survive that: it sets an error twice and
 * aborts with its guest. A doorbell is a message that nobody waits for, so one is there unread as often as not.
 *
 * So a connection is shut down first. From then on the peer can send nothing more, and what it has sent before can be
 * read until there is no more of it. Then it is closed in peace.
 */
#ifndef SKUAD_BASE_FAREWELL_H
#define SKUAD_BASE_FAREWELL_H

#include <sys/socket.h>

/*
 * Ends the connection @fd for all who have it; then it may be closed. This may take long: the kernel closes the
 * descriptors that come with the rest.
 */
static inline void farewell(int fd)
{
	char rest[4096];

	if (shutdown(fd, SHUT_RDWR))
		return;
	while (recv(fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
}

#endif /* SKUAD_BASE_FAREWELL_H */
