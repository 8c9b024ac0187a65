#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs that people begin with, as their distribution ships them.

. "$(dirname "$0")/tap.sh"

lists() { ibv_devices | grep -qw skua_0 && ibv_devices | grep -qw skua_1; }
# What ibv_devinfo says, word for word: a field may change its value, but not vanish.
tells() {
	ibv_devinfo -v -d skua_0 >/tmp/devinfo || return 1
	local field
	for field in 'vendor_id: *0x1af4' 'phys_port_cnt: *1' 'state: *PORT_ACTIVE (4)' 'link_layer: *Ethernet' \
		'transport: *InfiniBand (0)' 'atomic_cap: *ATOMIC_HCA (1)' 'GID\[ *1\]:.*192.0.2.1, RoCE v2'; do
		sed 's/\t/ /g' /tmp/devinfo | grep -q "$field" || { echo "no '$field'"; cat /tmp/devinfo; return 1; }
	done
}
# Where libibverbs and the kernel can ask for it, the speed is that of the network interface.
speed() {
	local mbps
	mbps=$(left cat /sys/class/net/skua0/speed) && ibv_devinfo -v -d skua_0 >/tmp/devinfo || return
	if grep -q ibv_query_port_speed "$(command -v ibv_devinfo)" && [ "$(uname -r | cut -d . -f 1)" -ge 7 ]; then
		grep -q "effective_speed:.*$((mbps / 1000)).0 Gbps" /tmp/devinfo
	else
		! grep -q effective_speed /tmp/devinfo
	fi || { echo "$mbps Mb/s"; cat /tmp/devinfo; return 1; }
}
# The server's status counts too; -c compares what arrives.
pingpong() {
	local server status=0
	right timeout 60 ibv_rc_pingpong -d skua_1 -g 1 -c -n 200 "$@" &
	server=$!
	within 10 sh -c 'right ss -ltnH | grep -q :18515' || return 1
	left timeout 60 ibv_rc_pingpong -d skua_0 -g 1 -c -n 200 "$@" 192.0.2.2 || status=1
	wait "$server" && [ "$status" = 0 ]
}

# 16 QPs share one SRQ.
srq_pingpong() {
	local server status=0
	right timeout 60 ibv_srq_pingpong -d skua_1 -g 1 -c "$@" &
	server=$!
	within 10 sh -c 'right ss -ltnH | grep -q :18515' || return 1
	left timeout 60 ibv_srq_pingpong -d skua_0 -g 1 -c "$@" 192.0.2.2 || status=1
	wait "$server" && [ "$status" = 0 ]
}

# Each client has an XRC connection there and one back; all share the domain of a file.
xsrq_pingpong() {
	local server process status=0 clients=()
	right timeout 60 ibv_xsrq_pingpong -d skua_1 -g 1 -c 3 -n 200 "$@" &
	server=$!
	within 10 sh -c 'right ss -ltnH | grep -q :18515' || return 1
	for _ in 1 2 3; do
		left timeout 60 ibv_xsrq_pingpong -d skua_0 -g 1 -n 200 "$@" 192.0.2.2 &
		clients+=($!)
	done
	for process in "${clients[@]}" "$server"; do
		wait "$process" || status=1
	done
	[ "$status" = 0 ]
}

# Frames from NIC to NIC: it takes MACs, and connects to nobody.
raw_ethernet() {
	local left right server status=0
	left=$(left cat /sys/class/net/skua0/address)
	right=$(right cat /sys/class/net/skua1/address)
	right timeout 60 "$1" -d skua_1 --server -B "$right" -E "$left" "${@:2}" &
	server=$!
	sleep 3
	left timeout 60 "$1" -d skua_0 --client -B "$left" -E "$right" "${@:2}" || status=1
	wait "$server" || status=1
	[ "$status" = 0 ]
}

# Nobody tells the sender how fast it may be, so that frames are lost; but each side says how many there were.
raw_bandwidth() {
	raw_ethernet raw_ethernet_bw -s 1000 -D 3 >/tmp/raw || { cat /tmp/raw; return 1; }
	awk '$1 == 1000 && $2 > 0 && $4 > 0 { n++ } END { exit n != 2 }' /tmp/raw || { cat /tmp/raw; return 1; }
}

t 'ibv_devices lists both NICs' lists
t 'ibv_devinfo tells of a port and its GIDs' tells
t 'ibv_devinfo tells the speed of the link' speed
t 'ibv_rc_pingpong, polling' pingpong
t 'ibv_rc_pingpong -e, with events' pingpong -e
t 'ibv_rc_pingpong, 1 MiB' pingpong -s 1048576 -n 20
t 'ibv_rc_pingpong, an MTU of 256' pingpong -m 256 -s 5000
t 'ibv_srq_pingpong, polling' srq_pingpong
t 'ibv_srq_pingpong -e, with events' srq_pingpong -e
t 'ibv_xsrq_pingpong, three clients, polling' xsrq_pingpong
t 'ibv_xsrq_pingpong -e, with events' xsrq_pingpong -e
t 'raw_ethernet_bw' raw_bandwidth
t 'raw_ethernet_lat' raw_ethernet raw_ethernet_lat -s 64 -n 200
end
