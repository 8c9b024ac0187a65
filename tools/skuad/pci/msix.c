// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * To raise a vector is to add one to an eventfd of the client, from any thread, while
 * SET_IRQS may be taking that eventfd away: so both hold the lock, across the write too,
 * else it could go to a descriptor that means something else by then. The write never waits:
 * eventfds are checked to be eventfds and set non-blocking when they arrive. (A client that
 * undoes this on its own end of the eventfd and lets it overflow could still hold up the
 * thread; it takes a hostile client, a guest cannot do it.)
 *
 * Masking and the table stay in the client, which shows a masked vector by leaving it without
 * an eventfd or by keeping the event to itself. A vector raised without an eventfd, while
 * MSI-X is enabled, is pending and goes off when it gets one.
 */
#include "pci/msix.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static_assert(SKUA_NUM_VECTORS == 64, "pending bits are one 64-bit word");

void msix_init(struct msix *m)
{
	unsigned int i;

	pthread_mutex_init(&m->lock, NULL);
	for (i = 0; i < SKUA_NUM_VECTORS; i++)
		m->fd[i] = -1;
	msix_reset(m);
}

void msix_destroy(struct msix *m)
{
	msix_set(m, 0, SKUA_NUM_VECTORS, NULL);
	pthread_mutex_destroy(&m->lock);
}

void msix_reset(struct msix *m)
{
	unsigned int i;

	msix_enable(m, false);
	memset(m->table, 0, sizeof(m->table));
	for (i = 0; i < SKUA_NUM_VECTORS; i++)
		m->table[i * PCI_MSIX_ENTRY_SIZE + PCI_MSIX_ENTRY_VECTOR_CTRL] =
			PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

void msix_enable(struct msix *m, bool on)
{
	pthread_mutex_lock(&m->lock);
	m->enabled = on;
	if (!on)
		m->pending = 0;
	pthread_mutex_unlock(&m->lock);
}

/* A full counter is as good as one more: the client has yet to look. */
static void signal_fd(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

void msix_raise(struct msix *m, unsigned int vector)
{
	pthread_mutex_lock(&m->lock);
	if (m->fd[vector] >= 0)
		signal_fd(m->fd[vector]);
	else if (m->enabled)
		m->pending |= 1ull << vector;
	pthread_mutex_unlock(&m->lock);
}

static bool is_eventfd(int fd)
{
	char path[32], target[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return !strcmp(target, "anon_inode:[eventfd]");
}

static bool set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int msix_set(struct msix *m, unsigned int start, unsigned int count, int *fds)
{
	unsigned int i;

	for (i = 0; fds && i < count; i++)
		if (!is_eventfd(fds[i]) || !set_nonblocking(fds[i]))
			return -EINVAL;

	pthread_mutex_lock(&m->lock);
	for (i = 0; i < count; i++) {
		unsigned int v = start + i;

		if (m->fd[v] >= 0)
			close(m->fd[v]);
		m->fd[v] = -1;
		if (!fds)
			continue;
		m->fd[v] = fds[i];
		fds[i] = -1;
		if (m->pending & 1ull << v) {
			m->pending &= ~(1ull << v);
			signal_fd(m->fd[v]);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return 0;
}

void msix_table_read(const struct msix *m, size_t offset, void *data, size_t len)
{
	memcpy(data, m->table + offset, len);
}

void msix_table_write(struct msix *m, size_t offset, const void *data, size_t len)
{
	memcpy(m->table + offset, data, len);
}

void msix_pba_read(struct msix *m, size_t offset, void *data, size_t len)
{
	uint64_t pending;

	pthread_mutex_lock(&m->lock);
	pending = m->pending;
	pthread_mutex_unlock(&m->lock);
	memcpy(data, (const uint8_t *)&pending + offset, len);
}
