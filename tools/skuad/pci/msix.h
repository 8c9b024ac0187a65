/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MSI-X: the vectors as eventfds of the client, the table and the pending bits.
 */
#ifndef SKUAD_PCI_MSIX_H
#define SKUAD_PCI_MSIX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/dev.h"

#define MSIX_TABLE_SIZE		(16 * SKUA_NUM_VECTORS)
#define MSIX_PBA_SIZE		(SKUA_NUM_VECTORS / 8)

struct msix {
	pthread_mutex_t lock;		/* of what follows, but the table */
	int fd[SKUA_NUM_VECTORS];	/* -1: none */
	uint64_t pending;		/* raised while there was no eventfd */
	bool enabled;			/* in configuration space */
	uint8_t table[MSIX_TABLE_SIZE];	/* kept for whoever reads it back; engine's thread */
};

void msix_init(struct msix *m);
void msix_destroy(struct msix *m);

/* The function was reset: nothing pending, not enabled, all masked. The eventfds are the
 * client's side of the wiring and stay. */
void msix_reset(struct msix *m);
void msix_enable(struct msix *m, bool on);

/* Raise a vector below SKUA_NUM_VECTORS. Any thread. */
void msix_raise(struct msix *m, unsigned int vector);

/*
 * Vectors @start to @start + @count, within range, get these eventfds, or none if @fds is
 * NULL. Takes the descriptors over and puts -1 in their place; -EINVAL if one of them is not
 * an eventfd, then nothing is changed.
 */
int msix_set(struct msix *m, unsigned int start, unsigned int count, int *fds);

/* Within the table or the pending bits. */
void msix_table_read(const struct msix *m, size_t offset, void *data, size_t len);
void msix_table_write(struct msix *m, size_t offset, const void *data, size_t len);
void msix_pba_read(struct msix *m, size_t offset, void *data, size_t len);

#endif /* SKUAD_PCI_MSIX_H */
