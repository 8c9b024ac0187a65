// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Captures. Theory of operation: an engine's thread makes a whole pcapng block on its stack
 * and copies it into a ring of bytes; if there is no room, the packet is lost and counted. A
 * thread of the capture's own takes bytes out and writes them. So what the reader does costs
 * an engine nothing but the copy; the lock is held for no longer than one.
 *
 * Indices run free; bytes from tail to head are the writer's to read without the lock.
 *
 * The descriptor may be shared with another process, so it is left blocking, and the writer
 * never gives it more than a poll() has promised room for: a pipe that is writable takes
 * PIPE_BUF bytes. That way it can always be told to stop.
 */
#include "link/capture.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "link/pcapng.h"
#include "packet/packet.h"

#define RING_BYTES	(8u << 20)
#define FRAME_MAX	(16u << 10)	/* longer ones are cut */
#define FILE_CHUNK	(256u << 10)
#define LOOK_MS		200		/* how often an idle writer looks for its reader */

struct capture {
	int fd;
	int event_fd;
	bool regular;			/* a file, which may be cut back */
	pthread_t thread;
	pthread_mutex_t lock;		/* of the fields up to ring */
	pthread_cond_t wake;		/* the ring is not empty, or stop */
	uint32_t head, tail;
	bool stop;
	uint64_t stop_ms;		/* when */
	uint64_t seen, lost, lost_since;
	_Atomic int error;		/* set once, by the writer */
	uint8_t *ring;

	/* The writer's own. */
	uint32_t block_left;		/* bytes of the block that is being written */
	bool block_is_packet;
	uint32_t block_done;
	uint64_t written;
	uint64_t last_ns;		/* of the latest packet, under the lock */
};

static uint64_t mono_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static void ring_copy_in(struct capture *cap, const uint8_t *from, uint32_t len)
{
	uint32_t at = cap->head % RING_BYTES;
	uint32_t run = len < RING_BYTES - at ? len : RING_BYTES - at;

	memcpy(cap->ring + at, from, run);
	memcpy(cap->ring, from + run, len - run);
	cap->head += len;
}

static uint32_t ring_word(const struct capture *cap, uint32_t index)
{
	uint32_t v;

	/* Blocks are multiples of 4 bytes, and so is the ring: a word is never cut. */
	memcpy(&v, cap->ring + index % RING_BYTES, 4);
	return v;
}

/* The room that @block of @len bytes needs is there, and it is in. Under the lock. */
static bool ring_push(struct capture *cap, const uint8_t *block, uint32_t len)
{
	if (RING_BYTES - (cap->head - cap->tail) < len)
		return false;
	if (cap->head == cap->tail)
		pthread_cond_signal(&cap->wake);
	ring_copy_in(cap, block, len);
	return true;
}

/* A packet of @caplen bytes stands at @block + PCAPNG_EPB_HEAD. */
static void capture_packet(struct capture *cap, bool out, uint64_t ns, uint8_t *block,
			   uint32_t caplen, uint32_t len)
{
	uint32_t block_len;

	pthread_mutex_lock(&cap->lock);
	cap->seen++;
	cap->last_ns = ns;
	block_len = pcapng_packet(block, out, ns, caplen, len, cap->lost_since);
	if (ring_push(cap, block, block_len)) {
		cap->lost_since = 0;
	} else {
		cap->lost++;
		cap->lost_since++;
	}
	pthread_mutex_unlock(&cap->lock);
}

void capture_frame(struct capture *cap, bool out, uint64_t ns, const struct seglist *frame)
{
	uint8_t block[PCAPNG_EPB_HEAD + FRAME_MAX + PCAPNG_EPB_TAIL];
	uint32_t caplen = 0;

	if (capture_error(cap))
		return;
	for (unsigned int s = 0; s < frame->n && caplen < FRAME_MAX; s++) {
		uint32_t run = frame->seg[s].len;

		if (run > FRAME_MAX - caplen)
			run = FRAME_MAX - caplen;
		memcpy(block + PCAPNG_EPB_HEAD + caplen, frame->seg[s].p, run);
		caplen += run;
	}
	capture_packet(cap, out, ns, block, caplen, frame->bytes);
}

void capture_train(struct capture *cap, bool out, uint64_t ns, const struct train *t)
{
	uint8_t block[PCAPNG_EPB_HEAD + ROCE_MAX_PACKET + PCAPNG_EPB_TAIL];

	for (uint32_t i = 0; i < t->npkts && !capture_error(cap); i++) {
		uint32_t len = roce_packet_build(block + PCAPNG_EPB_HEAD, t, i);

		capture_packet(cap, out, ns, block, len, len);
	}
}

/* @len bytes at the tail went out: which blocks are those? */
static void account(struct capture *cap, uint32_t len)
{
	uint32_t index = cap->tail;

	while (len) {
		uint32_t n;

		if (!cap->block_left) {
			cap->block_is_packet = ring_word(cap, index) == PCAPNG_EPB;
			cap->block_left = ring_word(cap, index + 4);
			cap->block_done = 0;
		}
		n = len < cap->block_left ? len : cap->block_left;
		cap->block_left -= n;
		cap->block_done += n;
		if (!cap->block_left && cap->block_is_packet)
			cap->written++;
		index += n;
		len -= n;
	}
}

/* A full disk leaves part of a block: take it back. */
static void cut_to_whole_blocks(struct capture *cap)
{
	off_t end;

	if (!cap->regular || !cap->block_left)
		return;
	end = lseek(cap->fd, 0, SEEK_CUR);
	if (end >= (off_t)cap->block_done && !ftruncate(cap->fd, end - cap->block_done))
		lseek(cap->fd, end - cap->block_done, SEEK_SET);
}

/* Is there a reader still? Of a pipe or a socket only, a file always has one. */
static int reader_gone(struct capture *cap)
{
	struct pollfd pfd = { .fd = cap->fd };

	if (!cap->regular && poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLERR | POLLHUP))
		return EPIPE;
	return 0;
}

static bool out_of_patience(struct capture *cap)
{
	bool out;

	pthread_mutex_lock(&cap->lock);
	out = cap->stop && mono_ms() - cap->stop_ms >= CAPTURE_PATIENCE_MS;
	pthread_mutex_unlock(&cap->lock);
	return out;
}

/* Writes some of the @len bytes at the tail. 0 or an errno. */
static int write_some(struct capture *cap, uint32_t len)
{
	uint32_t at = cap->tail % RING_BYTES;
	uint32_t max = cap->regular ? FILE_CHUNK : PIPE_BUF;
	struct pollfd pfd = { .fd = cap->fd, .events = POLLOUT };
	ssize_t n;

	if (len > max)
		len = max;
	if (len > RING_BYTES - at)
		len = RING_BYTES - at;

	do {
		if (!cap->regular && out_of_patience(cap))
			return ETIMEDOUT;
	} while (poll(&pfd, 1, LOOK_MS) <= 0);
	n = write(cap->fd, cap->ring + at, len);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : errno;

	account(cap, n);
	pthread_mutex_lock(&cap->lock);
	cap->tail += n;
	pthread_mutex_unlock(&cap->lock);
	return 0;
}

/* Bytes to write; waits for some. 0: none, look around. @done: and none will come. */
static uint32_t wait_for_bytes(struct capture *cap, bool *done)
{
	struct timespec until;
	uint32_t len;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;

	pthread_mutex_lock(&cap->lock);
	while (cap->head == cap->tail && !cap->stop) {
		if (pthread_cond_timedwait(&cap->wake, &cap->lock, &until))
			break;
	}
	len = cap->head - cap->tail;
	*done = cap->stop && !len;
	pthread_mutex_unlock(&cap->lock);
	return len;
}

static int write_all(struct capture *cap)
{
	bool done = false;
	int err = 0;

	while (!err && !done) {
		uint32_t len = wait_for_bytes(cap, &done);

		if (len)
			err = write_some(cap, len);
		else if (!done)
			err = reader_gone(cap);
	}
	return err;
}

/* The last block, when all others are out and no engine has the capture any more. */
static int write_stats(struct capture *cap)
{
	uint8_t block[PCAPNG_STATS_MAX];
	bool fits;

	pthread_mutex_lock(&cap->lock);
	fits = ring_push(cap, block, pcapng_stats(block, cap->last_ns, cap->seen, cap->lost));
	pthread_mutex_unlock(&cap->lock);
	return fits ? write_all(cap) : 0;
}

static void *writer(void *arg)
{
	struct capture *cap = arg;
	int err;

	err = write_all(cap);
	if (!err)
		err = write_stats(cap);
	if (err) {
		cut_to_whole_blocks(cap);
		atomic_store(&cap->error, err);
		eventfd_write(cap->event_fd, 1);
	}
	return NULL;
}

int capture_event_fd(const struct capture *cap)
{
	return cap->event_fd;
}

int capture_error(const struct capture *cap)
{
	return atomic_load_explicit(&cap->error, memory_order_relaxed);
}

/* The writer takes no signals: not those of main, nor SIGPIPE of a pipe without reader. */
static int start_writer(struct capture *cap)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&cap->thread, NULL, writer, cap);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

struct capture *capture_open(int fd, const char *name)
{
	uint8_t head[PCAPNG_HEAD_MAX];
	pthread_condattr_t attr;
	struct capture *cap;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return NULL;
	cap = calloc(1, sizeof(*cap));
	if (!cap)
		return NULL;
	cap->fd = fd;
	cap->regular = S_ISREG(st.st_mode);
	err = ENOMEM;
	cap->ring = malloc(RING_BYTES);
	if (!cap->ring)
		goto free_cap;
	cap->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = errno;
	if (cap->event_fd < 0)
		goto free_ring;

	pthread_mutex_init(&cap->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&cap->wake, &attr);
	pthread_condattr_destroy(&attr);
	ring_push(cap, head, pcapng_head(head, name));
	err = start_writer(cap);
	if (err)
		goto close_event;
	return cap;

close_event:
	pthread_cond_destroy(&cap->wake);
	pthread_mutex_destroy(&cap->lock);
	close(cap->event_fd);
free_ring:
	free(cap->ring);
free_cap:
	free(cap);
	errno = err;
	return NULL;
}

void capture_close(struct capture *cap, uint64_t *written, uint64_t *lost)
{
	pthread_mutex_lock(&cap->lock);
	cap->stop = true;
	cap->stop_ms = mono_ms();
	pthread_cond_signal(&cap->wake);
	pthread_mutex_unlock(&cap->lock);
	pthread_join(cap->thread, NULL);

	*written = cap->written;
	*lost = cap->seen - cap->written;
	pthread_cond_destroy(&cap->wake);
	pthread_mutex_destroy(&cap->lock);
	close(cap->event_fd);
	close(cap->fd);
	free(cap->ring);
	free(cap);
}
