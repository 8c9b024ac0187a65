/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* cmocka.h and what it wants before it. */
#ifndef SKUA_TEST_CMOCKA_ALL_H
#define SKUA_TEST_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif /* SKUA_TEST_CMOCKA_ALL_H */
