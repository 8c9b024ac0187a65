# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests that bind a device to the drivers while allocations fail. Needs tap.sh.

. "$(dirname "$0")/failures.sh"

device=$(basename "$(readlink -f /sys/class/infiniband/skua_0/device)")
driver=/sys/bus/pci/drivers/skua

# allocations DEPTH STEP LEAST: one, STEP later another, and so on, until there are no more. The kernel counts those of
# this task (fail-nth), of which a driver is among the last DEPTH callers. At least LEAST times a driver refuses its
# device: that of PCI, or the one for RDMA alone.
allocations() {
	local n left refused=0 without=0 bound=0
	set_up_failures "$1" && echo "$device" >$driver/unbind || return
	for ((n = 1; ; n += $2)); do
		echo $n >/proc/self/fail-nth
		# Builtins, so that it is this task that the kernel counts for.
		echo "$device" >$driver/bind
		read -r left </proc/self/fail-nth
		echo 0 >/proc/self/fail-nth
		[ "$left" = 0 ] || break
		if [ ! -e "$driver/$device" ]; then
			refused=$((refused + 1))
		elif [ ! -e "$driver/$device/infiniband" ]; then
			without=$((without + 1))
		else
			bound=$((bound + 1))
		fi
		[ ! -e "$driver/$device" ] || echo "$device" >$driver/unbind
	done
	# The last time nothing failed.
	echo "$device" >$driver/unbind || return
	tell "of $((n - $2)) allocations, $((refused + without + bound)) failed: $refused times the device was refused," \
		"$without times bound without RDMA, $bound times bound all the same"
	[ $((refused + without)) -ge "$3" ]
}
bind_again() { echo "$device" >$driver/bind && [ -e "$driver/$device" ]; }
