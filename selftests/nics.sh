# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests that take skua_0 away, or break it, while programs use it.

# shellcheck disable=SC2034
driver=/sys/bus/pci/drivers/skua
# shellcheck disable=SC2034
device=$(basename "$(readlink -f /sys/class/infiniband/skua_0/device)")

# A device that dies stays dead until a test does something about it. Binding it anew undoes that.
stays_dead() { devlink health set "pci/$device" reporter fatal auto_recover false; }
stays_dead

works() { left rdma_traffic -Q -n 60 -s 0-20000 skua_0 skua_1; }
# works_in SECONDS [COMMAND...]: traffic, `works` by default, that runs once. Only its beginning is waited for: status 2
# of rdma_traffic says that devices cannot be opened or connected yet. How often is told.
# shellcheck disable=SC2154 # tap.sh sets slowness
works_in() {
	local end=$((SECONDS + $1 * slowness)) tries=0 status
	shift
	while :; do
		tries=$((tries + 1))
		"${@:-works}"
		status=$?
		[ $status = 2 ] && [ $SECONDS -lt $end ] || break
		sleep 0.1
	done
	[ $tries = 1 ] || tell "$((tries - 1)) times there was no connection yet"
	return $status
}
there() { [ -e /sys/class/infiniband/skua_0 ] && [ -e /sys/class/infiniband/skua_1 ]; }

# has_carrier 0|1: as Linux says of skua0.
has_carrier() { [ "$(left cat /sys/class/net/skua0/carrier)" = "$1" ]; }

# a_qp [TYPE]: the number of a QP in RTS, an RC QP by default, in $qpn, and of its CQ, in $cqn.
a_qp() {
	read -r qpn cqn < <(skuactl qps skua0 |
		awk -v type="${1:-RC}" '$3 == type && $4 == "RTS" { print $2, $(NF - 1); exit }')
}

# Traffic in the background, as $traffic, some of which runs when this returns; and its end by an error, maybe while
# other queue pairs are being connected.
# shellcheck disable=SC2154 # tap.sh sets slowness
start_traffic() {
	left timeout $((60 * slowness)) rdma_traffic -t $((50 * slowness)) "$@" skua_0 skua_1 >/tmp/traffic 2>&1 &
	traffic=$!
	within 10 a_qp
}
traffic_ends() {
	wait "$traffic"
	local status=$?
	[ $status = 1 ] || [ $status = 2 ] && return
	echo "traffic ended with status $status: $(</tmp/traffic)"
	return 1
}

# A device that was bound anew begins in the initial namespace, down and without addresses, and recovers by itself.
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
	stays_dead
}
