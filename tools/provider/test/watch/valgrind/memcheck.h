/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* In the place of valgrind's header of this name: tests see what it is told. */
#ifndef SKUA_TEST_MEMCHECK_H
#define SKUA_TEST_MEMCHECK_H

#include <stddef.h>

void memcheck_defined(const void *addr, size_t length);

#define VALGRIND_MAKE_MEM_DEFINED(addr, length)	memcheck_defined(addr, length)

#endif /* SKUA_TEST_MEMCHECK_H */
