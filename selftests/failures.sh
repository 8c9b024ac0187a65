# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests that let allocations of their own shell fail (/proc/self/fail-nth): what they do has to be builtins.

# shellcheck disable=SC2034
# Frames from an allocation to who asked for it: the kernel's fault injection, the allocator, a wrapper or two.
NEAR=10

# Of the drivers' code: the addresses where it begins, and where it ends at the latest.
text_of_drivers() {
	local name
	for name in skua skua_ib; do
		echo "$(cat /sys/module/$name/sections/.text) $(cat /sys/module/$name/coresize)"
	done | sort | awk 'NR == 1 { first = $1 } END { print first, $1, $2 }'
}
# set_up_failures DEPTH: only those fail of which a driver is among the last DEPTH callers.
# The kernel does not mind that an entry of /proc/irq cannot be made, and warns when it takes away
# what is not there: those allocations succeed.
set_up_failures() {
	local start end which first last size debug=/sys/kernel/debug
	# Its own symbols, which come first, are in the order of their addresses.
	read -r start end < <(awk '/ register_irq_proc$/ { start = $1; next }
		start { print "0x" start, "0x" $1; exit }' /proc/kallsyms) || return
	read -r first last size < <(text_of_drivers) || return
	for which in failslab fail_page_alloc; do
		echo 0 >$debug/$which/ignore-gfp-wait &&
			echo 0 >$debug/$which/verbose &&
			echo "$1" >$debug/$which/stacktrace-depth &&
			echo "$first" >$debug/$which/require-start &&
			printf '0x%x' $((last + size)) >$debug/$which/require-end &&
			echo "$start" >$debug/$which/reject-start &&
			echo "$end" >$debug/$which/reject-end || return
	done
	# Single pages fail, too.
	echo 0 >$debug/fail_page_alloc/min-order
}
