#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# RST-8: the device is taken away while programs use it: by reset from outside, by unbinding, by
# unloading; programs are killed in the middle. Every time the programs end with an error and
# do not hang, and a new one finds a device that works. SKUA_CYCLES says how often (10).
# Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"

cycles=${SKUA_CYCLES:-10}
driver=/sys/bus/pci/drivers/skua
device=$(basename "$(readlink -f /sys/class/infiniband/skua_0/device)")

works() { left rdma_traffic -Q -n 60 -s 0-20000 skua_0 skua_1; }
there() { [ -e /sys/class/infiniband/skua_0 ] && [ -e /sys/class/infiniband/skua_1 ]; }

# Kernel memory that is not given back by itself, in KiB.
unreclaimable() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^(SUnreclaim|Percpu|KernelStack|PageTables):/ { sum += $2 } END { print sum }' /proc/meminfo
}

# Traffic in the background, as $traffic, that runs when this returns; and its end by an error.
begin_traffic() {
	left timeout 60 rdma_traffic -q 8 -t 50 skua_0 skua_1 >/tmp/traffic 2>&1 &
	traffic=$!
	sleep "0.$((RANDOM % 3 + 1))$((RANDOM % 10))"
}
traffic_ends() {
	wait "$traffic"
	local status=$?
	[ $status = 1 ] && return
	echo "traffic ended with status $status: $(</tmp/traffic)"
	return 1
}

# A device that was bound anew begins in the initial namespace, down and without addresses.
dress() {
	local mac name space ipv4 ipv6 path
	while read -r mac name _ space ipv4 ipv6; do
		ip netns exec "$space" test -e "/sys/class/net/$name" && continue
		for path in /sys/class/net/*; do
			[ "$(<"$path/address")" = "$mac" ] && break
		done
		[ "${path##*/}" = "$name" ] || ip link set "${path##*/}" name "$name" || return
		ip link set "$name" netns "$space" &&
			ip -n "$space" address add "$ipv4" dev "$name" &&
			ip -n "$space" address add "$ipv6" dev "$name" nodad &&
			ip -n "$space" link set "$name" up || return
	done </usr/lib/skua-lab/nics.list
}

reset_cycle() {
	begin_traffic
	echo 1 >"/sys/bus/pci/devices/$device/reset" || return
	traffic_ends && there && works
}
unbind_cycle() {
	begin_traffic
	echo "$device" >$driver/unbind || return
	traffic_ends && echo "$device" >$driver/bind && dress && within 5 there && within 5 works
}
reload_cycle() {
	begin_traffic
	rmmod skua_ib || return
	traffic_ends && rmmod skua && modprobe -a skua skua_ib && dress && within 5 there &&
		within 5 works
}
reload_ib_cycle() {
	begin_traffic
	rmmod skua_ib || return
	traffic_ends && modprobe skua_ib && within 5 there && within 5 works
}
kill_cycle() {
	begin_traffic
	pkill -KILL -x rdma_traffic
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
	echo "# $1: $cycles cycles, kernel memory $before KiB, then $after KiB" >&3
	# A cycle that loses as little as a page would show in 1,000; 10 are no measure.
	[ "$cycles" -lt 100 ] || [ $((after - before)) -lt $((cycles * 2)) ]
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
	! left grep -q up /sys/class/net/skua0/operstate &&
		ip -n left link set skua0 up && ip -n left address add 2001:db8::1/64 dev skua0 nodad &&
		within 5 works
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
	within 5 works
}

exec 3>&1
t 'traffic' works
t 'a netdev keeps its settings over a reset' settings_stay
t 'a netdev that is down stays so over a reset' down_stays_down
t 'a netdev goes up and down during resets' down_while_it_is_away
t 'resets under traffic' many reset_cycle
t 'unbinding under traffic' many unbind_cycle
t 'unloading skua_ib under traffic' many reload_ib_cycle
t 'unloading both under traffic' many reload_cycle
t 'programs killed under traffic' many kill_cycle
end
