#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The drivers come and go, with programs running and without. Leaves the NICs as the lab set
# them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

nics() { /usr/lib/skua-lab/nics "$@" </usr/lib/skua-lab/nics.list; }
works() { left rdma_traffic -Q -n 200 skua_0 skua_1; }
gone() { [ ! -e /sys/class/infiniband/skua_0 ] && [ ! -e /sys/class/infiniband/skua_1 ]; }
pci() { basename "$(readlink -f "/sys/class/infiniband/$1/device")"; }

# The lab's script makes namespaces, which exist by now.
again() {
	ip netns del left
	ip netns del right
	nics split left right && works
}
reload() { rmmod skua_ib && gone && rmmod skua && [ ! -e /sys/class/net/skua0 ] && again; }
# Frames go both ways on both channels when the driver goes.
reload_under_frames() {
	local frames=()
	right iperf3 -s -1 -D
	within 5 right sh -c 'ss -ltnH | grep -q :5201'
	left iperf3 -c 192.0.2.2 -P 4 -t 30 >/dev/null 2>&1 &
	frames+=($!)
	left ping -q -f -w 30 192.0.2.2 >/dev/null 2>&1 &
	frames+=($!)
	sleep 1
	rmmod skua_ib && rmmod skua || return
	kill "${frames[@]}"
	pkill -x iperf3
	again
}
reload_ib() {
	rmmod skua_ib && gone && left ping -q -c 1 192.0.2.2 && modprobe skua_ib && works_in 5
}
rebind() {
	local device
	device=$(pci skua_0)
	echo "$device" >/sys/bus/pci/drivers/skua/unbind &&
		[ ! -e /sys/class/infiniband/skua_0 ] && [ -e /sys/class/infiniband/skua_1 ] &&
		echo "$device" >/sys/bus/pci/drivers/skua/bind && again_after_bind
}
# A device that was bound anew begins in the initial namespace.
again_after_bind() {
	rmmod skua_ib
	rmmod skua
	again
}
# DBP-6: doorbell pages, the kernel's and those of programs, as x86 tells how they are mapped. Prints a line a page.
doorbell_pages() {
	local start end from to type
	read -r start end _ < <(sed -n 3p "/sys/bus/pci/devices/$(pci skua_0)/resource")
	while IFS=' -]' read -r _ _ from to type; do
		((from >= start && to <= end + 1)) && echo "$type"
	done < <(grep '^PAT: \[mem' /sys/kernel/debug/x86/pat_memtype_list)
}
two_pages_are_mapped() { [ "$(doorbell_pages | wc -l)" -ge 2 ]; }
doorbells_are_uncached() {
	local mapped
	left rdma_traffic -t $((3 * slowness)) -q 1 skua_0 skua_1 >/dev/null &
	within 20 two_pages_are_mapped
	mapped=$(doorbell_pages)
	echo "$mapped"
	wait $! && [ "$(wc -l <<<"$mapped")" -ge 2 ] && ! grep -v '^uncached' <<<"$mapped"
}
no_errors_in_log() { ! dmesg | grep -v 'module verification' | grep -E 'skua.*(error|failed|timed out)'; }

t 'traffic' works
t 'doorbells are mapped without caches' doorbells_are_uncached
for _ in 1 2 3 4 5; do
	t 'unload and load' reload
done
t 'unload and load with frames on their way' reload_under_frames
t 'unload and load skua_ib alone' reload_ib
t 'unbind and bind' rebind
t 'the log has no errors' no_errors_in_log
end
