/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the hardware interface asks of the machine that a program runs on. */
#ifndef SKUA_HOST_H
#define SKUA_HOST_H

#include <skua/regs.h>

/* DBP-1, ARM-1 */
#if __SIZEOF_LONG__ != 8
#error "libskua needs a 64-bit machine: a doorbell is one 64-bit store, and so is the arm word of a CQ"
#endif

/*
 * Features that can be used, of all that there are. The device adds to and compares little-endian words
 * (ATM-1), and fetches them so; a program has its words in the machine's order.
 */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SKUA_HOST_FEATURES	(~0ull)
#else
#define SKUA_HOST_FEATURES	(~(1ull << SKUA_F_ATOMIC))
#endif

#endif /* SKUA_HOST_H */
