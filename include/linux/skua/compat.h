/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Skua: what both modules need to be told of older kernels.
 */
#ifndef LINUX_SKUA_COMPAT_H
#define LINUX_SKUA_COMPAT_H

#include <linux/version.h>

/* Namespace of the symbols that skua.ko exports: a string from Linux 6.13 on, a word before. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define SKUA_NS		SKUA
#else
#define SKUA_NS		"SKUA"
#endif

#endif /* LINUX_SKUA_COMPAT_H */
