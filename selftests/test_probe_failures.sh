#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Allocations that fail, one at a time, while the drivers take a device: they refuse it or do
# without, and take it the next time. Needs a kernel with fault injection (lab run --kernel debug);
# test_leaks.sh says whether anything of theirs is left.

. "$(dirname "$0")/tap.sh"

device=$(basename "$(readlink -f /sys/class/infiniband/skua_0/device)")
driver=/sys/bus/pci/drivers/skua
debug=/sys/kernel/debug

# The kernel does not mind that an entry of /proc/irq cannot be made, and warns when it takes away
# what is not there: those allocations succeed.
set_up_failures() {
	local start end which
	read -r start end < <(sort /proc/kallsyms |
		awk '/ register_irq_proc$/ { start = $1; next } start { print "0x" start, "0x" $1; exit }') || return
	for which in failslab fail_page_alloc; do
		echo 0 >$debug/$which/ignore-gfp-wait &&
			echo 0 >$debug/$which/verbose &&
			echo "$start" >$debug/$which/reject-start &&
			echo "$end" >$debug/$which/reject-end || return
	done
}
# The first, then the second, and so on, until there are no more: the kernel counts those of this task (fail-nth).
every_allocation_of_probe() {
	local n left refused=0 bound=0
	set_up_failures && echo "$device" >$driver/unbind || return
	for ((n = 1; ; n++)); do
		echo $n >/proc/self/fail-nth
		# Builtins, so that it is this task that the kernel counts for.
		echo "$device" >$driver/bind
		read -r left </proc/self/fail-nth
		echo 0 >/proc/self/fail-nth
		[ "$left" = 0 ] || break
		if [ -e "$driver/$device" ]; then
			bound=$((bound + 1))
			echo "$device" >$driver/unbind
		else
			refused=$((refused + 1))
		fi
	done
	tell "$((n - 1)) allocations failed: $refused times the device was refused, $bound times bound all the same"
	echo "$device" >$driver/unbind
	[ $refused -gt 20 ] && [ $bound -gt 0 ]
}
bind_again() { echo "$device" >$driver/bind && [ -e "$driver/$device" ]; }

t 'allocations of probe fail' every_allocation_of_probe
t 'the device can be bound again' bind_again
end
