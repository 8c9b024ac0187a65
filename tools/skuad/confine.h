/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a guest that got the better of skuad could still do with it: little.
 */
#ifndef SKUAD_CONFINE_H
#define SKUAD_CONFINE_H

#include <stdbool.h>

/* Builds with sanitizers, which are for tests, are not confined: sanitizers make calls of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINED	0
#else
#define CONFINED	1
#endif

/*
 * From now on this thread, and those that it starts, make the system calls that skuad needs while
 * it serves, and have no capabilities. Any other call ends the process by SIGSYS, with a line in the log;
 * opening or removing a file fails. Threads that are there already keep what they have: there must be none.
 * @connects: there are links that look for their peers. False with errno set.
 */
bool confine(bool connects);

/*
 * The same for the process of remover.c, which may wait, take and end connections, and remove files. Of its
 * capabilities it keeps those for files of others. Any other call kills it. False with errno set.
 */
bool confine_remover(void);

#endif /* SKUAD_CONFINE_H */
