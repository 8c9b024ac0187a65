#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The Ethernet side of the NICs, and the GID table that follows it.

. "$(dirname "$0")/tap.sh"

gids() {
	local i
	for i in /sys/class/infiniband/skua_0/ports/1/gids/*; do
		grep -v '^0000:0000:0000:0000:0000:0000:0000:0000$' "$i"
	done 2>/dev/null
}
has_gid() { gids | grep -q "$1"; }
no_gid() { ! has_gid "$1"; }
port_is() { grep -q "$1" /sys/class/infiniband/skua_0/ports/1/state; }

ping4() { left ping -q -c 3 -i 0.2 -W 2 192.0.2.2; }
ping6() { left ping -q -c 3 -i 0.2 -W 2 2001:db8::2; }
ping_mtu() { left ping -q -c 3 -i 0.2 -W 2 -M 'do' -s 1472 192.0.2.2; }
tcp() {
	right timeout 20 nc -l -N 192.0.2.2 5001 >/tmp/tcp.in &
	head -c 4000000 /dev/urandom >/tmp/tcp.out
	within 5 sh -c 'right ss -ltnH | grep -q :5001'
	left timeout 20 nc -N 192.0.2.2 5001 </tmp/tcp.out && wait $! && cmp /tmp/tcp.in /tmp/tcp.out
}
driver_name() { left ethtool -i skua0 | grep -qx 'driver: skua'; }
counts_frames() {
	local before after
	before=$(cat_left /sys/class/net/skua0/statistics/tx_packets)
	ping4 >/dev/null
	after=$(cat_left /sys/class/net/skua0/statistics/tx_packets)
	[ "$after" -ge $((before + 3)) ]
}
cat_left() { left cat "$1"; }
ipv4_gid() {
	no_gid ffff:c633:6401 &&
		left ip address add 198.51.100.1/24 dev skua0 && within 5 has_gid ffff:c633:6401 &&
		left ip address del 198.51.100.1/24 dev skua0 && within 5 no_gid ffff:c633:6401
}
ipv6_gid() {
	no_gid 2001:0db8:0001 &&
		left ip address add 2001:db8:1::1/64 dev skua0 nodad &&
		within 5 has_gid 2001:0db8:0001:0000:0000:0000:0000:0001 &&
		left ip address del 2001:db8:1::1/64 dev skua0 && within 5 no_gid 2001:0db8:0001
}
port_follows() {
	left ip link set skua0 down && within 5 port_is DOWN &&
		left ip link set skua0 up && within 5 port_is ACTIVE &&
		left ip address replace 2001:db8::1/64 dev skua0 nodad && within 5 ping4
}

t 'ping over IPv4' ping4
t 'ping over IPv6' ping6
t 'a frame of the whole MTU' ping_mtu
t 'TCP, 4 MB compared' tcp
t 'ethtool knows the driver' driver_name
t 'statistics count frames' counts_frames
t 'GIDs follow IPv4 addresses' ipv4_gid
t 'GIDs follow IPv6 addresses' ipv6_gid
t 'the port follows the network device' port_follows
end
