/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What Debian's sparse (0.6.4) does not know, and the headers of newer kernels use. */
#ifndef SKUA_LAB_SPARSE_H
#define SKUA_LAB_SPARSE_H

#define __typeof_unqual__	__typeof__
/* MODULE_INFO() asserts it of string literals when it is compiled. */
#define __builtin_strlen(s)	(sizeof(s) - 1)

#endif /* SKUA_LAB_SPARSE_H */
