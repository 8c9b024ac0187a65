/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files of skuad's sockets, removed when it has ended.
 */
#ifndef SKUAD_REMOVER_H
#define SKUAD_REMOVER_H

#include <stdbool.h>

#define REMOVER_MAX	1024

/* A file that is to be removed. At most REMOVER_MAX are; more are left. */
void remover_add(const char *path);

/*
 * Starts a process that waits until this one has ended, however it ends, and then removes the files
 * that are still the sockets they were. Call it before there are threads, and before confine().
 * False with errno set.
 */
bool remover_start(void);

/* The orderly end: the files are gone when this returns. Without remover_start() it does nothing. */
void remover_finish(void);

#endif /* SKUAD_REMOVER_H */
