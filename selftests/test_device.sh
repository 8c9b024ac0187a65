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

# Programs reckon the NIC's bandwidth from them.
link_is_that_of_a_card() {
	local at=/sys/class/infiniband/skua_0/device
	[ "$(cat $at/current_link_speed)" = '16.0 GT/s PCIe' ] && [ "$(cat $at/current_link_width)" = 16 ] &&
		[ "$(cat $at/max_link_speed)" = '16.0 GT/s PCIe' ] && [ "$(cat $at/max_link_width)" = 16 ]
}
commands() { cat "/sys/kernel/debug/skua/$(pci skua_0)/commands"; }
# CREATE_QP and DESTROY_QP: how many there were of either.
qp_commands() { commands | awk '$1 == "0x0040" || $1 == "0x0043" { print $2 }'; }
commands_are_counted() {
	local made gone made_before gone_before
	{ read -r made_before && read -r gone_before; } < <(qp_commands)
	works || return
	{ read -r made && read -r gone; } < <(qp_commands)
	[ $((made - made_before)) -gt 0 ] && [ $((made - made_before)) = $((gone - gone_before)) ] &&
		commands | awk 'NR > 1 && (!$2 || $3 > $2 || $5 > $4) { exit 1 }'
}
# The lab's script makes namespaces, which exist by now.
again() {
	ip netns del left
	ip netns del right
	nics split left right && works
}
reload() { rmmod skua_ib && gone && rmmod skua && ! left test -e /sys/class/net/skua0 && again; }
# All connections are made, frames have gone both ways on both channels, and both programs run, when the driver is
# removed.
on_all_rings() {
	grep -q connections /tmp/streams &&
		left ethtool -S skua0 | awk '/^ *[rt]x[01]_frames:/ && $2 >= 20 { n++ } END { exit n != 4 }'
}
frames_flow() {
	within 60 on_all_rings && kill -0 "$@" && return
	left ethtool -S skua0 | grep '[rt]x[01]_frames'
	tail -n 5 /tmp/streams /tmp/ping
	return 1
}
replies() { grep -c 'bytes from' /tmp/ping; }
more_replies() { [ "$(replies)" -gt "$1" ]; }
# Connections outlive their NICs: all that was sent arrives as it was, and there are replies to ping again.
reload_under_frames() {
	local streams ping server status before
	right python3 ./frames.py digest &
	server=$!
	within 60 right sh -c 'ss -ltnH | grep -q :5003'
	left python3 ./frames.py streams 192.0.2.2 16 $((20 + 10 * slowness)) >/tmp/streams 2>&1 &
	streams=$!
	left ping -i 0.01 192.0.2.2 >/tmp/ping 2>&1 &
	ping=$!
	frames_flow $streams $ping
	status=$?
	rmmod skua_ib && rmmod skua && modprobe skua && modprobe skua_ib && dress ||
		{ kill $streams $ping $server; return 1; }
	before=$(replies)
	within 10 more_replies "$((before + 10))" || status=1
	wait $streams || { status=1; tail -n 20 /tmp/streams; }
	kill $server
	kill -INT $ping
	wait $ping || status=1
	tail -n 3 /tmp/ping
	works_in 5 && return $status
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
t 'commands are counted' commands_are_counted
t 'the PCI link is that of a card' link_is_that_of_a_card
t 'doorbells are mapped without caches' doorbells_are_uncached
for _ in 1 2 3 4 5; do
	t 'unload and load' reload
done
t 'unload and load with frames on their way' reload_under_frames
t 'unload and load skua_ib alone' reload_ib
t 'unbind and bind' rebind
t 'the log has no errors' no_errors_in_log
end
