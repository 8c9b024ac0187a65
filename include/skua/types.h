/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the hardware interface headers of Skua need from where they are built:
 * fixed-width little-endian types, and static_assert. They build in the kernel,
 * in an rdma-core provider and in plain C11 user space alike.
 */
#ifndef SKUA_TYPES_H
#define SKUA_TYPES_H

#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif

/* Size and offsets are part of the interface: state each where it is defined. */
#define SKUA_ASSERT_SIZE(type, size) \
	static_assert(sizeof(type) == (size), #type " has the wrong size")
#define SKUA_ASSERT_OFFSET(type, member, offset) \
	static_assert(offsetof(type, member) == (offset), \
		      #type "." #member " is at the wrong offset")

#endif /* SKUA_TYPES_H */
