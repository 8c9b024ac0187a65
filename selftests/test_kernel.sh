#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Consumers in the kernel: skua_selftest.ko's own tests, and its traffic while drivers go away. Leaves
# the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"

dir=/sys/kernel/debug/skua_selftest

nics() { /usr/lib/skua-lab/nics "$@" </usr/lib/skua-lab/nics.list; }
pci() { basename "$(readlink -f "/sys/class/infiniband/$1/device")"; }
again() {
	rmmod skua_ib 2>/dev/null
	rmmod skua 2>/dev/null
	ip netns del left
	ip netns del right
	nics split left right
}
loaded() { [ -d /sys/module/skua_selftest ]; }
transfers() { sed -n 's/.*transfers \([0-9]*\) .*/\1/p' $dir/hold; }
has_moved() { [ "$(transfers)" -gt 100 ]; }
hold() { echo "${1:-workqueue}" >$dir/hold && within 10 has_moved; }
# It ended: nothing was wrong, and much was moved.
released() { cat $dir/hold; grep -qE '^released transfers [0-9]{3,} flushed [0-9]+ wrong 0$' $dir/hold; }

# The module's own results are tests of this one.
run_inside() {
	local line name
	echo 1 >$dir/run
	while read -r line; do
		name=${line#*ok [0-9]* }
		case $line in
		'#'*) echo "$line" ;;
		'ok '*) t "$name" true ;;
		'not ok '*) t "$name" false ;;
		esac
	done <$dir/run
	grep -q '^1\.\.[1-9]' $dir/run
}

rmmod_under_traffic() { hold "$1" && rmmod skua_selftest && ! loaded && modprobe skua_selftest; }
rmmod_ib_under_traffic() { hold && rmmod skua_ib && released && again; }
unbind_under_traffic() {
	local device
	device=$(pci "$1")
	hold "$2" && echo "$device" >/sys/bus/pci/drivers/skua/unbind && released &&
		echo "$device" >/sys/bus/pci/drivers/skua/bind && again
}
reset_under_traffic() {
	hold "$2" && echo 1 >"/sys/bus/pci/devices/$(pci "$1")/reset" && released && again
}
# How often the moderation of a CQ was changed (SKUA_CMD_MODIFY_CQ): the kernel adapts that of its users' CQs (rdma_dim),
# unless it is told not to.
moderations() { awk '$1 == "0x0033" { n = $2 } END { print n + 0 }' "/sys/kernel/debug/skua/$(pci skua_0)/commands"; }
has_moderated_since() { [ "$(moderations)" -gt "$1" ]; }
adaptive() {
	local before
	before=$(moderations)
	hold softirq && within 10 has_moderated_since "$before" && rmmod skua_selftest && modprobe skua_selftest
}
not_adaptive() {
	local before status=0
	before=$(moderations)
	rdma dev set skua_0 adaptive-moderation off && hold softirq && sleep 2 || status=1
	echo "$before, $(moderations)"
	! has_moderated_since "$before" && rdma dev set skua_0 adaptive-moderation on && rmmod skua_selftest &&
		modprobe skua_selftest && return $status
}
again_and_again() {
	for _ in {1..20}; do
		hold || return
		rmmod skua_selftest || return
		modprobe skua_selftest || return
	done
}
no_errors_in_log() { ! dmesg | grep -v 'module verification' | grep -E 'skua.*(error|failed|timed out)'; }

t 'load' modprobe skua_selftest
run_inside || t 'results' false
t 'unload skua_ib under traffic' rmmod_ib_under_traffic
for poll in direct softirq workqueue; do
	t "unload under traffic, $poll" rmmod_under_traffic $poll
	t "unbind the sender under traffic, $poll" unbind_under_traffic skua_0 $poll
	t "unbind the receiver under traffic, $poll" unbind_under_traffic skua_1 $poll
	t "reset the sender under traffic, $poll" reset_under_traffic skua_0 $poll
	t "reset the receiver under traffic, $poll" reset_under_traffic skua_1 $poll
done
t 'the moderation of CQs adapts to traffic' adaptive
t 'and does not, if that is off' not_adaptive
t 'twenty times' again_and_again
run_inside || t 'results' false
t 'unload' rmmod skua_selftest
t 'the log has no errors' no_errors_in_log
end
