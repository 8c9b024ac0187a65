// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * Doorbells are posted writes of some 40 bytes, and what they cost is the system call: so
 * one recvmsg() takes whatever has come, and messages are served where they lie in the
 * buffer. A message that is not whole yet moves to the front and waits for its rest.
 *
 * Which message do file descriptors belong to? The kernel ends a recvmsg() behind the piece
 * of the stream that carried descriptors, and clients send a message by one sendmsg(), so it
 * is the message that has the last byte received with them (with a message in pieces, the
 * one those pieces are of). While an unfinished message has descriptors, no byte of the next
 * one is received: then there is never more than one set of them here.
 *
 * Descriptors that nobody keeps are the closer's. So are those that are too many: what finds no room in the control
 * buffer is closed by the kernel on this thread, so it has room for as many as there can be.
 */
#include "pci/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/closer.h"

#define HDR_SIZE	sizeof(struct vfio_user_hdr)

static_assert(CHANNEL_RX_SIZE >= 2 * VFIO_USER_MAX_MSG, "a message must fit behind another");

static void close_all(struct closer *closer, int *fds, unsigned int *nfds)
{
	unsigned int i;

	for (i = 0; i < *nfds; i++)
		if (fds[i] >= 0)
			closer_fd(closer, fds[i]);
	*nfds = 0;
}

void channel_init(struct channel *ch)
{
	ch->fd = -1;
	ch->head = 0;
	ch->tail = 0;
	ch->nfds = 0;
	ch->msg_nfds = 0;
}

void channel_open(struct channel *ch, int fd, struct closer *closer)
{
	channel_init(ch);
	ch->fd = fd;
	ch->closer = closer;
}

void channel_close(struct channel *ch)
{
	close_all(ch->closer, ch->msg_fds, &ch->msg_nfds);
	close_all(ch->closer, ch->fds, &ch->nfds);
	if (ch->fd >= 0)
		closer_connection(ch->closer, ch->fd);
	channel_init(ch);
}

void channel_stop(struct channel *ch)
{
	shutdown(ch->fd, SHUT_RD);
}

/* Unfinished messages start at the front, so that the rest always finds room. */
static void compact(struct channel *ch)
{
	if (!ch->head)
		return;
	memmove(ch->rx, ch->rx + ch->head, ch->tail - ch->head);
	ch->tail -= ch->head;
	ch->fds_end -= ch->nfds ? ch->head : 0;
	ch->head = 0;
}

/* How much may be received now. */
static size_t room(const struct channel *ch)
{
	struct vfio_user_hdr hdr;

	if (!ch->nfds)
		return sizeof(ch->rx) - ch->tail;
	if (ch->tail < HDR_SIZE)
		return HDR_SIZE - ch->tail;
	memcpy(&hdr, ch->rx, sizeof(hdr));
	return hdr.size - ch->tail;
}

/* Keeps the descriptors that came with @mh. NULL, or why the client cannot be served. */
static const char *take_fds(struct channel *ch, struct msghdr *mh)
{
	static const char too_many[] = "more than 16 file descriptors with a message";
	int fds[CLOSER_MSG_FDS];
	const char *why = NULL;
	unsigned int i, n = 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		for (i = 0; i < n; i++) {
			if (ch->nfds < VFIO_USER_MAX_FDS) {
				ch->fds[ch->nfds++] = fds[i];
			} else {
				closer_fd(ch->closer, fds[i]);
				why = too_many;
			}
		}
		ch->fds_end = ch->tail;
	}
	/* The kernel closed what this process may not have: it may be all of them. */
	if (mh->msg_flags & MSG_CTRUNC)
		return "skuad may have too few descriptors (see ulimit -n)";
	return why;
}

int channel_receive(struct channel *ch, const char **why)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(CLOSER_MSG_FDS * sizeof(int))];
	} control;
	struct iovec iov;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	compact(ch);
	iov.iov_base = ch->rx + ch->tail;
	iov.iov_len = room(ch);
	n = recvmsg(ch->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return 0;
		/* A reset: the peer left without reading all of its replies. */
		*why = errno == ECONNRESET ? NULL : strerror(errno);
		return -errno;
	}
	ch->tail += n;
	if (mh.msg_controllen || mh.msg_flags & MSG_CTRUNC) {
		*why = take_fds(ch, &mh);
		if (*why)
			return -EMFILE;
	}
	if (!n) {
		*why = ch->tail ? "the client disconnected in the middle of a message" : NULL;
		return -EPIPE;
	}
	return 1;
}

int channel_next(struct channel *ch, struct channel_msg *msg, const char **why)
{
	size_t have = ch->tail - ch->head;
	const uint8_t *p = ch->rx + ch->head;

	close_all(ch->closer, ch->msg_fds, &ch->msg_nfds);
	if (have < HDR_SIZE)
		return 0;
	memcpy(&msg->hdr, p, HDR_SIZE);
	if (msg->hdr.size < HDR_SIZE) {
		*why = "a message is shorter than its header";
		return -EPROTO;
	}
	if (msg->hdr.size > VFIO_USER_MAX_MSG) {
		*why = "a message is longer than was agreed";
		return -EPROTO;
	}
	if (have < msg->hdr.size)
		return 0;
	msg->body = p + HDR_SIZE;
	msg->len = msg->hdr.size - HDR_SIZE;
	ch->head += msg->hdr.size;
	if (ch->nfds && ch->fds_end <= ch->head) {
		memcpy(ch->msg_fds, ch->fds, ch->nfds * sizeof(ch->fds[0]));
		ch->msg_nfds = ch->nfds;
		ch->nfds = 0;
	}
	msg->fds = ch->msg_fds;
	msg->nfds = ch->msg_nfds;
	return 1;
}

int channel_send(struct channel *ch, const void *data, size_t len)
{
	ssize_t n = send(ch->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return -errno;
	/* Half a reply can never be made whole without waiting. */
	return (size_t)n == len ? 0 : -EAGAIN;
}
