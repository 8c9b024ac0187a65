#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A bond (active-backup) of skua0 and skua2, with skua1 as its peer: the GIDs of the bond are those of the RDMA device
# whose netdev is active, and move with it. Needs three NICs on one wire (lab run with three --device). A wire delivers a
# frame to the first NIC that has its MAC, so each NIC keeps its own (fail_over_mac active). Leaves the NICs as the lab set
# them up.

. "$(dirname "$0")/tap.sh"

address=192.0.2.9 gid=0000:0000:0000:0000:0000:ffff:c000:0209
peer=192.0.2.2 number=0

has() { cat "/sys/class/infiniband/$1/ports/1/gids/"* | grep -q "$2"; }
is_active() { has "$1" $gid && ! has "$2" $gid; }
becomes_active() { within 5 is_active "$1" "$2"; }
# The addresses that the lab gave.
own() { has skua_0 ffff:c000:0201 && has skua_2 ffff:c000:0203; }
neither() { ! has skua_0 ffff:c000:0201 && ! has skua_2 ffff:c000:0203; }

# Programs of rdma_cm from the bond to its peer, and from the peer to the bond; each pings so often. A server is waited
# for by its own port.
pings() {
	local server=$1 client=$2 to=$3 count=$4 pid status port
	port=$((7200 + number++))
	$server timeout 60 rping -s -a "$to" -p $port -V >/dev/null 2>&1 &
	pid=$!
	within 5 eval "$server rdma resource show cm_id | grep -q 'LISTEN.*:$port\>'"
	$client timeout 60 rping -c -a "$to" -p $port -C "$count" -v -V >/tmp/pings 2>&1
	status=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $status = 0 ] && grep -c 'ping data' /tmp/pings
}
packets() { skuactl counters "$1" | awk '$1 == "rdma_tx_packets" { print $2 }'; }
# They use this NIC and not the other.
works_by() {
	local active other
	active=$(packets "$1") other=$(packets "$2")
	pings right left $peer 20 && pings left right $address 20 || { cat /tmp/pings; return 1; }
	[ "$(packets "$1")" -gt "$active" ] && [ "$(packets "$2")" = "$other" ]
}

bond() {
	modprobe bonding max_bonds=0 || return
	ip -n left link add bond0 type bond mode active-backup miimon 50 fail_over_mac active num_grat_arp 3 || return
	for nic in skua0 skua2; do
		ip -n left link set $nic down && ip -n left address flush dev $nic && ip -n left link set $nic master bond0 ||
			return
	done
	ip -n left link set bond0 type bond active_slave skua0 && ip -n left link set bond0 up &&
		ip -n left address add $address/24 dev bond0 && within 5 left ping -q -c 1 -W 1 $peer &&
		becomes_active skua_0 skua_2 && neither
}
# Of the administrator's choice, and back.
failover() {
	ip -n left link set bond0 type bond active_slave skua2 && becomes_active skua_2 skua_0 &&
		within 5 left ping -q -c 1 -W 1 $peer && works_by skua2 skua0 &&
		ip -n left link set bond0 type bond active_slave skua0 && becomes_active skua_0 skua_2 &&
		within 5 left ping -q -c 1 -W 1 $peer && works_by skua0 skua2
}
# Whichever end of a connection has sent something over the link that goes down gets an error. An end that only waits to
# receive learns nothing, as RC has it. New connections use the other link.
cqe_errors() { skuactl counters | awk '$1 == "cqe_errors" { print $2 + $3 + $4 }'; }
link_goes_down() {
	local server client before status
	before=$(cqe_errors)
	right rping -s -a $peer -p 7199 -V >/dev/null 2>&1 &
	server=$!
	within 5 eval "right rdma resource show cm_id | grep -q 'LISTEN.*:7199\>'"
	left rping -c -a $peer -p 7199 -C 1000000 -V >/tmp/pings 2>&1 &
	client=$!
	within 5 eval "rdma resource show qp link skua_0/1 | grep -q 'type RC state RTS'" &&
		skuactl link skua0 down && becomes_active skua_2 skua_0 &&
		within 5 left ping -q -c 1 -W 1 $peer && works_by skua2 skua0 &&
		within 60 eval "[ \"\$(cqe_errors)\" -gt ${before:-0} ]"
	status=$?
	kill $client $server 2>/dev/null
	wait $client $server
	skuactl link skua0 up
	return $status
}
# Programs learn of it, though the netdev is a part of a bond.
port_events() {
	local watcher status
	stdbuf -oL ibv_asyncwatch -d skua_0 >/tmp/events 2>&1 &
	watcher=$!
	within 5 grep -q '^skua_0' /tmp/events && skuactl link skua0 down && within 5 grep -qi 'port_err\|port error' /tmp/events &&
		skuactl link skua0 up && within 5 grep -qi 'port_active\|port active' /tmp/events
	status=$?
	kill $watcher
	cat /tmp/events
	skuactl link skua0 up
	return $status
}
reset_of_the_active() {
	echo 1 >"/sys/bus/pci/devices/$(basename "$(readlink -f /sys/class/infiniband/skua_2/device)")/reset" &&
		within 10 test -e /sys/class/infiniband/skua_2 && within 5 left ping -q -c 1 -W 1 $peer || return
	ip -n left link set bond0 type bond active_slave skua2 && becomes_active skua_2 skua_0 && works_by skua2 skua0
}
# And each NIC has its own GIDs again.
unbond() {
	ip -n left link del bond0 && ! has skua_0 $gid && ! has skua_2 $gid || return
	ip -n left address add 192.0.2.1/24 dev skua0 && ip -n left address add 2001:db8::1/64 dev skua0 nodad &&
		ip -n left address add 192.0.2.3/24 dev skua2 && ip -n left address add 2001:db8::3/64 dev skua2 nodad &&
		ip -n left link set skua0 up && ip -n left link set skua2 up && within 5 own &&
		within 5 left ping -q -c 1 -W 1 $peer && left rdma_traffic -Q -n 60 skua_0 skua_1 && rmmod bonding
}

t 'traffic' left rdma_traffic -Q -n 60 skua_0 skua_1
t 'the bond has its GIDs on the active NIC' bond
t 'traffic over the bond' works_by skua0 skua2
t 'GIDs and traffic follow the active NIC' failover
t 'the link of the active NIC goes down' link_goes_down
t 'the port tells of its link' port_events
t 'the active NIC is reset' reset_of_the_active
t 'without the bond, each NIC has its own GIDs' unbond
end
