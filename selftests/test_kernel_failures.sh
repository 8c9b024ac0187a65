#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Allocations of the drivers that fail, one at a time, while a consumer in the kernel makes its objects, and while a NIC
# is reset: the consumer is refused or does without, and the NIC can be reset again. Needs a kernel with fault injection
# (lab run --kernel debug); test_leaks.sh says whether anything is left.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"
. "$(dirname "$0")/failures.sh"

make=/sys/kernel/debug/skua_selftest/make

# fail STEP FILE: write to a file while the kernel's STEP-th allocation fails. Status 2: it makes fewer.
fail() {
	local left status
	echo "$1" >/proc/self/fail-nth
	echo 1 2>/dev/null >"$2"
	status=$?
	read -r left </proc/self/fail-nth
	echo 0 >/proc/self/fail-nth
	[ "$left" = 0 ] || return 2
	return $((status > 0))
}

every_allocation_of_a_consumer() {
	local n refused=0 without=0
	modprobe skua_selftest && set_up_failures $NEAR && echo 1 >$make || return
	for ((n = 1; ; n++)); do
		fail $n $make
		case $? in
		0) without=$((without + 1)) ;;
		1) refused=$((refused + 1)) ;;
		*) break ;;
		esac
	done
	tell "$((n - 1)) allocations failed: $refused times the consumer was refused, $without times it did without"
	echo 1 >$make && rmmod skua_selftest && [ $refused -gt 5 ]
}

# They are nearly those of a probe (test_probe_failures.sh), so every tenth will do.
allocations_of_a_reset() {
	local n lines dead=0 reset=/sys/bus/pci/devices/$device/reset
	set_up_failures $NEAR || return
	for ((n = 1; ; n += 10)); do
		lines=$(dmesg | wc -l)
		fail $n "$reset"
		[ $? = 2 ] && break
		there && continue
		dead=$((dead + 1))
		# A bond goes on using an interface that has a carrier. If RDMA alone is lost, the interface works.
		if dmesg | tail -n "+$((lines + 1))" | grep -q 'cannot be used after its reset'; then
			[ "$(left cat /sys/class/net/skua0/carrier)" = 0 ] || { echo "carrier after $n" && return 1; }
		else
			within 5 left ping -q -c 1 192.0.2.2 >/dev/null || { echo "no frames after $n" && return 1; }
		fi
		echo 1 >"$reset" && within 10 there || return
	done
	tell "$((n / 10)) allocations failed: $dead times the NIC could not be used, until it was reset again"
	[ $dead -gt 2 ] && echo 1 >"$reset" && within 10 there
}

t 'allocations of a consumer in the kernel fail' every_allocation_of_a_consumer
t 'allocations of a reset fail' allocations_of_a_reset
t 'the NIC works' works_in 10
end
