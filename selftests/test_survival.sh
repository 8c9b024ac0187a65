#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The device is taken away while programs use it: by reset from outside, by unbinding, by
# unloading; programs are killed in the middle. Every time the programs end with an error and
# do not hang, and a new one finds a device that works. SKUA_CYCLES says how often (10), and
# SKUA_KINDS which of them (all). Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

cycles=${SKUA_CYCLES:-10}
kinds=${SKUA_KINDS:-reset unbind reload_ib reload kill}

# Kernel memory that is not given back by itself, in KiB.
unreclaimable() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^(SUnreclaim|Percpu|KernelStack|PageTables):/ { sum += $2 } END { print sum }' /proc/meminfo
}

begin_traffic() {
	start_traffic -q 8 && sleep "0.$((RANDOM % 3 + 1))$((RANDOM % 10))"
}

reset_cycle() {
	begin_traffic && echo 1 >"/sys/bus/pci/devices/$device/reset" || return
	traffic_ends && there && works
}
unbind_cycle() {
	begin_traffic && echo "$device" >$driver/unbind || return
	traffic_ends && echo "$device" >$driver/bind && dress && within 5 there && works_in 5
}
reload_cycle() {
	begin_traffic && rmmod skua_ib || return
	traffic_ends && rmmod skua && modprobe -a skua skua_ib && dress && within 5 there &&
		works_in 5
}
reload_ib_cycle() {
	begin_traffic && rmmod skua_ib || return
	traffic_ends && modprobe skua_ib && within 5 there && works_in 5
}
kill_cycle() {
	begin_traffic && pkill -KILL -x rdma_traffic || return
	wait "$traffic"
	works
}

# What is lost in each cycle adds up; what is cached the first times does not.
many() {
	local i before after
	for ((i = 0; i < cycles; i++)); do
		"$1" || { echo "cycle $i of $cycles"; return 1; }
		[ $i != $((cycles / 4)) ] || before=$(unreclaimable)
	done
	after=$(unreclaimable)
	tell "$1: $cycles cycles, kernel memory $before KiB, then $after KiB"
	# A KiB lost in each of 1,000 cycles would show; 10 are no measure.
	[ "$cycles" -lt 100 ] || [ $((after - before)) -lt $((cycles / 2 + 200)) ]
}

addresses() { ip -n left -o address show dev skua0; }
settings_stay() {
	local before
	ip -n right link set skua1 mtu 4000
	ip -n left link set skua0 mtu 4000 && before=$(addresses) || return
	echo 1 >"/sys/bus/pci/devices/$device/reset" || return
	within 5 left grep -q up /sys/class/net/skua0/operstate
	[ "$(addresses)" = "$before" ] && left ping -q -c 1 -s 3000 -M "do" 192.0.2.2 || {
		addresses
		return 1
	}
	ip -n left link set skua0 mtu 1500
	ip -n right link set skua1 mtu 1500
}
down_stays_down() {
	ip -n left link set skua0 down
	echo 1 >"/sys/bus/pci/devices/$device/reset" || return
	! left grep -q up /sys/class/net/skua0/operstate && ! skuactl qps skua0 | grep -w ETH &&
		ip -n left link set skua0 up && ip -n left address add 2001:db8::1/64 dev skua0 nodad &&
		works_in 5
}
down_while_it_is_away() {
	ip netns exec right ping -q -f -w 5 192.0.2.1 >/dev/null &
	for _ in 1 2 3; do
		echo 1 >"/sys/bus/pci/devices/$device/reset" &
		ip -n left link set skua0 down
		ip -n left link set skua0 up
		wait $!
	done
	ip -n left link set skua0 up
	ip -n left address replace 2001:db8::1/64 dev skua0 nodad
	works_in 5
}

t 'traffic' works
t 'a netdev keeps its settings over a reset' settings_stay
t 'a netdev that is down stays so over a reset' down_stays_down
t 'a netdev goes up and down during resets' down_while_it_is_away
for kind in $kinds; do
	t "$kind under traffic" many "${kind}_cycle"
done
end
