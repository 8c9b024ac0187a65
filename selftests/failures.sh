# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests that let allocations of their own shell fail (/proc/self/fail-nth): what they do has to be builtins.

# shellcheck disable=SC2034
# Frames from an allocation to who asked for it: the kernel's fault injection, the allocator, a wrapper or two.
NEAR=10

# Of the drivers' code: the addresses of the first and of the last function.
text_of_drivers() {
	awk '$4 ~ /^\[skua(_ib)?\]$/ && $2 ~ /^[tT]$/ { print $1 }' /proc/kallsyms | sort |
		awk 'NR == 1 { first = $1 } END { print first, $1 }'
}
# set_up_failures DEPTH: only those fail of which a driver is among the last DEPTH callers.
# The kernel does not mind that an entry of /proc/irq cannot be made, and warns when it takes away
# what is not there: those allocations succeed.
set_up_failures() {
	local start end which first last debug=/sys/kernel/debug
	read -r start end < <(sort /proc/kallsyms |
		awk '/ register_irq_proc$/ { start = $1; next } start { print "0x" start, "0x" $1; exit }') || return
	read -r first last < <(text_of_drivers) || return
	for which in failslab fail_page_alloc; do
		echo 0 >$debug/$which/ignore-gfp-wait &&
			echo 0 >$debug/$which/verbose &&
			echo "$1" >$debug/$which/stacktrace-depth &&
			echo "0x$first" >$debug/$which/require-start &&
			echo "0x${last%???}fff" >$debug/$which/require-end &&
			echo "$start" >$debug/$which/reject-start &&
			echo "$end" >$debug/$which/reject-end || return
	done
}
