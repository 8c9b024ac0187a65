// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * A page of a shared file mapping that the file cannot provide raises SIGBUS in whichever
 * thread touches it: the file was truncated, or there is no huge page left for it. No seal
 * excludes the latter, so every mapping of guest memory is guarded, sealed or not.
 *
 * The handler looks the address up, puts anonymous zero pages in place of the whole mapping,
 * tells the owner through its eventfd, and returns: the access happens again, on memory of
 * our own, and the device goes on with zeros until the owner's thread has ended it. So no
 * code that touches guest memory need know of any of this, on any thread.
 *
 * The table is read by a signal handler, hence without locks: an entry is valid while its
 * base is not NULL; base is set last and cleared first. An entry goes only after the last
 * access to its mapping. The owner's eventfd outlives its entries. Other entries may go, and be
 * used again, while the handler looks: what it reads of an entry counts only if base is the
 * same before and after.
 */
#include "pci/mem_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_MAPPINGS	4096

static struct mapping {
	char *_Atomic base;
	_Atomic size_t size;
	_Atomic int fd;
} mappings[MAX_MAPPINGS];

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;	/* of writers */
static struct sigaction previous;

struct found {
	char *base;
	size_t size;
	int fd;
};

static bool find(const char *addr, struct found *f)
{
	size_t i;

	for (i = 0; i < MAX_MAPPINGS; i++) {
		struct mapping *m = &mappings[i];

		f->base = atomic_load(&m->base);
		f->size = atomic_load(&m->size);
		f->fd = atomic_load(&m->fd);
		if (f->base && addr >= f->base && addr < f->base + f->size && atomic_load(&m->base) == f->base)
			return true;
	}
	return false;
}

static void on_sigbus(int sig, siginfo_t *si, void *context)
{
	int saved = errno;
	uint64_t one = 1;
	struct found f;

	(void)context;
	if (si->si_code <= 0 || !find(si->si_addr, &f) ||
	    mmap(f.base, f.size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
		/* Not ours: as if we had never been here, when the access happens again. */
		sigaction(sig, &previous, NULL);
		if (si->si_code <= 0)
			raise(sig);
		return;
	}
	if (write(f.fd, &one, sizeof(one)) < 0)
		errno = saved;	/* then the counter is full, and the owner told */
	errno = saved;
}

/* With the first mapping; and with a later one if somebody has taken the signal since. */
static void install(void)
{
	struct sigaction now, sa = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	sigaction(SIGBUS, NULL, &now);
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_sigbus)
		return;
	previous = now;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

int mem_guard_init(struct mem_guard *g)
{
	g->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return g->fd < 0 ? -errno : 0;
}

void mem_guard_destroy(struct mem_guard *g)
{
	close(g->fd);
}

int mem_guard_add(struct mem_guard *g, void *base, size_t size)
{
	int ret = -ENOSPC;
	size_t i;

	pthread_mutex_lock(&table_lock);
	install();
	for (i = 0; i < MAX_MAPPINGS; i++) {
		if (atomic_load(&mappings[i].base))
			continue;
		atomic_store(&mappings[i].size, size);
		atomic_store(&mappings[i].fd, g->fd);
		atomic_store(&mappings[i].base, base);
		ret = 0;
		break;
	}
	pthread_mutex_unlock(&table_lock);
	return ret;
}

void mem_guard_del(void *base)
{
	size_t i;

	pthread_mutex_lock(&table_lock);
	for (i = 0; i < MAX_MAPPINGS; i++) {
		if (atomic_load(&mappings[i].base) == base) {
			atomic_store(&mappings[i].base, NULL);
			break;
		}
	}
	pthread_mutex_unlock(&table_lock);
}

bool mem_guard_tripped(struct mem_guard *g)
{
	uint64_t n;

	return read(g->fd, &n, sizeof(n)) == sizeof(n);
}
