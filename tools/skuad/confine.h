/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a guest that got the better of skuad could still do with it: little.
 */
#ifndef SKUAD_CONFINE_H
#define SKUAD_CONFINE_H

#include <stdbool.h>

/*
 * From now on this thread, and those that it starts, make the system calls that skuad needs while
 * it serves, and have no capabilities. Any other call ends the process by SIGSYS, with a line in the log;
 * opening or removing a file fails. Threads that are there already keep what they have: there must be none.
 * @connects: there are links that look for their peers. False with errno set.
 */
bool confine(bool connects);

#endif /* SKUAD_CONFINE_H */
