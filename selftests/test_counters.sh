#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# ethtool, `ip`, `rdma link` and `rdma statistic` tell the same as skuactl, which asks the NIC itself.

. "$(dirname "$0")/tap.sh"

# These count the questions, too.
counting='^(commands|events|interrupts)$'

# NAME VALUE, sorted: of the NIC, of its netdev, of its RDMA device.
of_nic() {
	skuactl --json counters "$1" | tr -d ' ",' | tr : ' ' | awk -v skip="$counting" \
		'NF == 2 && $2 ~ /^[0-9]+$/ && $1 !~ skip && $1 != "time_ns"' | sort
}
of_netdev() {
	"$1" ethtool -S "$2" | tr -d ' ' | tr : ' ' | awk -v skip="$counting" \
		'NF == 2 && $1 !~ skip && $1 !~ /^[rt]x[0-9]+_/' | sort
}
of_rdma() {
	rdma -j statistic show link "$1/1" | tr ',' '\n' | tr -d '[]{}"' | tr : ' ' | awk -v skip="$counting" \
		'NF == 2 && $1 !~ skip && $1 !~ /^(ifname|ifindex|port)$/' | sort
}
# Of a sorted list: one value.
value() { awk -v name="$1" '$1 == name { print $2 }'; }

moved() {
	left ping -q -c 3 -i 0.2 -s 1400 192.0.2.2 >/dev/null &&
		left rdma_traffic -Q -n 200 -s 0-70000 skua_0 skua_1 &&
		[ "$(of_nic skua0 | value rdma_tx_bytes)" -gt 1000000 ] &&
		[ "$(of_nic skua0 | value rdma_rx_bytes)" -gt 1000000 ] &&
		[ "$(of_nic skua1 | value tx_frames)" -gt 3 ]
}

# A frame of the network's own may pass in between; so they are compared again.
equal() {
	local nic
	for nic in 0 1; do
		diff <(of_nic "skua$nic") <("$@" "$nic") || return
	done
}
netdev_of() { if [ "$1" = 0 ]; then of_netdev left skua0; else of_netdev right skua1; fi; }
rdma_of() { of_rdma "skua_$1"; }
many() { [ "$(of_nic skua0 | wc -l)" -gt 40 ]; }

# The netdev's and the NIC's, of frames and bytes. Each counts from a day of its own, and the driver may have
# dropped some since; so it is the difference that counts.
of_both() {
	local name way
	for name in packets=frames bytes=bytes; do
		for way in tx rx; do
			left cat "/sys/class/net/skua0/statistics/${way}_${name%=*}"
			of_nic skua0 | value "${way}_${name#*=}"
		done
	done
}
stack_agrees() {
	local before after i
	mapfile -t before < <(of_both)
	left ping -q -c 3 -i 0.2 -s 1000 192.0.2.2 >/dev/null
	mapfile -t after < <(of_both)
	for i in 0 2 4 6; do
		[ $((after[i] - before[i])) = $((after[i + 1] - before[i + 1])) ] || return
	done
	[ $((after[0] - before[0])) -ge 3 ] &&
		[ "$(left ip -s -j link show skua0 | sed 's/.*"tx":{"bytes":\([0-9]*\).*/\1/')" -ge "${after[4]}" ]
}

# Both are up, or both are down, wherever one asks.
link_is() {
	local up=$1 lower=$2 port=$3
	skuactl --json devices | tr -d ' \n' | grep -q "\"name\":\"skua0\",[^}]*\"link_up\":$up" &&
		left ip link show skua0 | grep -qw "$lower" &&
		left ethtool skua0 | grep -q "Link detected: $4" &&
		left rdma link show skua_0/1 | grep -q "state $port physical_state $5 netdev skua0"
}
link_follows() {
	skuactl link skua0 down && within 5 link_is false NO-CARRIER DOWN no POLLING || return
	skuactl link skua0 up && within 5 link_is true LOWER_UP ACTIVE yes LINK_UP
}
mtu_follows() {
	left ip link set skua0 mtu 4000 || return
	skuactl --json devices | tr -d ' \n' | grep -q '"name":"skua0",[^}]*"mtu":4000'
	local status=$?
	left ip link set skua0 mtu 1500
	return $status
}
# skuactl and `rdma resource` see the same QPs, but for those of Ethernet, which are no RDMA resource.
resources_agree() {
	[ "$(skuactl qps skua0 | grep -cE ' (RC|UC|UD|GSI) ')" = "$(rdma resource show qp link skua_0/1 | grep -c lqpn)" ]
}

t 'traffic' moved
t 'the NIC has counters' many
t 'ethtool -S agrees' within 5 equal netdev_of
t 'rdma statistic agrees' within 5 equal rdma_of
t 'ip -s agrees' within 8 stack_agrees
t 'the link, everywhere' link_follows
t 'the MTU' mtu_follows
t 'rdma resource agrees' within 5 resources_agree
end
