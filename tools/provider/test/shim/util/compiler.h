/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What rdma-core's header of this name gives the ring code, for tests on a bare host. */
#ifndef SKUA_TEST_COMPILER_H
#define SKUA_TEST_COMPILER_H

#define __force
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

#endif /* SKUA_TEST_COMPILER_H */
