/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is left to do when skuad has ended, however it ends: its connections are ended, and the files of its sockets
 * removed.
 */
#ifndef SKUAD_REMOVER_H
#define SKUAD_REMOVER_H

#include <stdbool.h>

#define REMOVER_MAX	1024
#define REMOVER_CONNECTIONS	512

/* A file that is to be removed. At most REMOVER_MAX are; more are left. */
void remover_add(const char *path);

/*
 * Starts a process that waits until this one has ended, however it ends, and then ends the connections that are left
 * and removes the files that are still the sockets they were. Call it before there are threads, and before confine().
 * False with errno set.
 */
bool remover_start(void);

/* @fd is a connection. At most REMOVER_CONNECTIONS are kept at a time. Any thread; never blocks. */
void remover_keep(int fd);

/* The orderly end: the files are gone when this returns. Without remover_start() it does nothing. */
void remover_finish(void);

#endif /* SKUAD_REMOVER_H */
