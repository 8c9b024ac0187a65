#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The drivers leave, and of all that they and the kernel above them had, nothing is lost. The
# last test of a guest, for those before it. Needs kmemleak (lab run --kernel debug).

. "$(dirname "$0")/tap.sh"

leaks=/sys/kernel/debug/kmemleak

drivers_leave() { rmmod skua_ib && rmmod skua; }
no_leak() {
	# An object has to be old, and found twice.
	for _ in 1 2 3; do
		echo scan >$leaks || return
		sleep 3
	done
	cat $leaks
	[ -z "$(<$leaks)" ]
}

t 'the drivers leave' drivers_leave
t 'no memory is lost' no_leak
end
