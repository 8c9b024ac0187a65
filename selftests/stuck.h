/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A file whose pages never come: in a file system (FUSE) that answers all but reads. Needs root.
 */
#ifndef SELFTESTS_STUCK_H
#define SELFTESTS_STUCK_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define STUCK_FILE	2	/* its node */

struct stuck {
	char dir[32];
	size_t size;		/* bytes of the file */
	int dev;
	pthread_t server;
	void *mem;		/* the file, mapped */
};

static inline struct fuse_attr stuck_attr(const struct stuck *s, uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .nlink = 1, .mode = S_IFDIR | 0755 };

	if (node == STUCK_FILE) {
		attr.mode = S_IFREG | 0600;
		attr.size = s->size;
	}
	return attr;
}

static inline void stuck_answer(const struct stuck *s, uint64_t unique, int error, void *body, size_t size)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + size), .error = -error, .unique = unique };
	struct iovec iov[] = { { &header, sizeof(header) }, { body, size } };

	/* Whoever asked may be gone. */
	if (writev(s->dev, iov, 2) < 0 && errno != ENOENT)
		perror("fuse");
}

static inline void stuck_serve_one(const struct stuck *s, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = STUCK_FILE, .attr_valid = 1000, .entry_valid = 1000,
					.attr = stuck_attr(s, STUCK_FILE) };
	struct fuse_attr_out attr = { .attr_valid = 1000, .attr = stuck_attr(s, in->nodeid) };
	struct fuse_open_out opened = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		stuck_answer(s, in->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		stuck_answer(s, in->unique, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		stuck_answer(s, in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		stuck_answer(s, in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
	case FUSE_INTERRUPT:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		break;
	default:
		stuck_answer(s, in->unique, ENOSYS, NULL, 0);
	}
}

static inline void *stuck_serve(void *arg)
{
	static uint64_t buf[8192];
	const struct stuck *s = arg;
	ssize_t n;

	while ((n = read(s->dev, buf, sizeof(buf))) > 0 || errno == EINTR || errno == ENOENT)
		if (n > 0)
			stuck_serve_one(s, (void *)buf);
	return NULL;
}

/* 0 or a negative errno. */
static inline int stuck_open(struct stuck *s, size_t size)
{
	char text[128];
	int fd;

	*s = (struct stuck){ .dir = "/tmp/stuckXXXXXX", .size = size };
	if (!mkdtemp(s->dir) || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL))
		return -errno;
	s->dev = open("/dev/fuse", O_RDWR);
	if (s->dev < 0)
		return -errno;
	snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=0,group_id=0", s->dev);
	if (mount("stuck", s->dir, "fuse", MS_NOSUID | MS_NODEV, text))
		return -errno;
	if (pthread_create(&s->server, NULL, stuck_serve, s))
		return -EAGAIN;
	snprintf(text, sizeof(text), "%s/file", s->dir);
	fd = open(text, O_RDONLY);
	if (fd < 0)
		return -errno;
	s->mem = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return s->mem == MAP_FAILED ? -errno : 0;
}

/* Who waits for a page gets none. The memory stays mapped until stuck_close(). */
static inline void stuck_give_up(struct stuck *s)
{
	umount2(s->dir, MNT_FORCE);
	pthread_join(s->server, NULL);
}

static inline void stuck_close(struct stuck *s)
{
	munmap(s->mem, s->size);
	umount2(s->dir, MNT_DETACH);
	close(s->dev);
	rmdir(s->dir);
}

#endif /* SELFTESTS_STUCK_H */
