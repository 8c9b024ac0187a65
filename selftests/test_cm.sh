#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs that find each other by address: rdma_cm's own, perftest with it, and those of libibverbs that
# use UD and UC; from each NIC to the other, over IPv4, IPv6 and a VLAN. Where a program can compare what
# arrives, it is asked to. Leaves the NICs as the lab set them up.
#
# SKUA_CM_FROM is the number of the NIC to begin from, if the other one shall not.

. "$(dirname "$0")/tap.sh"

declare -A addresses=(
	[ipv4]='192.0.2.1 192.0.2.2' [ipv6]='2001:db8::1 2001:db8::2' [vlan]='198.51.100.1 198.51.100.2'
)
read -ra vlan <<<"${addresses[vlan]}"
spaces=(left right)
read -ra clients <<<"${SKUA_CM_FROM:-0 1}"

# A way: from the NIC $client to $server, by the addresses of a family.
way() {
	local both
	read -ra both <<<"${addresses[$1]}"
	from=${spaces[$2]} to=${spaces[1 - $2]} address=${both[1 - $2]} own=${both[$2]}
	nic=skua_$2 other=skua_$((1 - $2))
}
listens() { "$to" rdma resource show cm_id 2>/dev/null | grep -q 'state LISTEN'; }
tcp_listens() { "$to" ss -ltnH | grep -q ":$1 "; }

# both READY SERVER -- CLIENT: both programs' status counts.
both() {
	local ready=$1 server=() status=0 pid
	shift
	while [ "$1" != -- ]; do server+=("$1"); shift; done
	shift
	"$to" timeout 60 "${server[@]}" >/tmp/server 2>&1 &
	pid=$!
	if within 10 eval "$ready"; then
		"$from" timeout 60 "$@" || status=$?
	else
		echo 'the server does not listen'
		kill $pid 2>/dev/null
		status=1
	fi
	wait $pid || { echo "server: status $?"; status=1; }
	[ $status = 0 ] || cat /tmp/server
	return $status
}

ping() { both listens rping -s -a "$address" -V -C 30 -S 5000 -- rping -c -a "$address" -V -C 30 -S 5000; }
connections() {
	both listens ucmatose -b "$address" -c 8 -C 20 -S 70000 -- \
		ucmatose -s "$address" -b "$own" -c 8 -C 20 -S 70000
}
datagrams() {
	both listens udaddy -b "$address" -c 4 -C 20 -S 1000 -- udaddy -s "$address" -b "$own" -c 4 -C 20 -S 1000
}
# Whoever joins later than the other sends misses what was sent: the sender is asked again.
group() {
	local pid group=239.7.7.7
	"$to" timeout 60 mckey -m $group -b "$address" -c 2 -C 5 -S 1000 >/tmp/server 2>&1 &
	pid=$!
	for _ in {1..20}; do
		"$from" timeout 60 mckey -m $group -b "$own" -s -c 2 -C 5 -S 1000 >/tmp/client 2>&1 ||
			{ cat /tmp/client; break; }
		sleep 0.2
		kill -0 $pid 2>/dev/null || break
	done
	# It returns 0 also if it cannot join.
	wait $pid && grep -q 'data transfers complete' /tmp/server || { cat /tmp/server; return 1; }
}
many() { both 'tcp_listens 7471' cmtime -b "$address" -c 50 -- cmtime -s "$address" -c 50; }
stream() { both listens rstream -b "$address" -T v -S 20000 -C 100 -- rstream -s "$address" -T v -S 20000 -C 100; }
iostream() {
	both listens riostream -b "$address" -T v -S 20000 -C 100 -- riostream -s "$address" -T v -S 20000 -C 100
}
# Its server serves for ever.
copy() {
	local files pid status
	files=$(mktemp -d)
	head -c 3000001 /dev/urandom >"$files/a"
	"$to" timeout 60 rcopy >/tmp/server 2>&1 &
	pid=$!
	within 10 listens && "$from" timeout 60 rcopy "$files/a" "$address:$files/b" && cmp "$files/a" "$files/b"
	status=$?
	kill $pid
	wait $pid
	rm -r "$files"
	return $status
}
# perftest PROGRAM OPTIONS...: connected by rdma_cm; the server, by the command $slow.
slow=()
by_cm() {
	local program=$1
	shift
	[[ $address == *:* ]] && set -- "$@" --ipv6-addr
	both listens listen-first "${slow[@]}" "$program" -R -d "$other" -F "$@" -- "$program" -R -d "$nic" -F "$@" "$address"
}

# A server that takes 0.1 s for each call of rdma_cm's listens late, unless it listens first.
slowly() {
	local slow=(strace -o /dev/null -P /dev/infiniband/rdma_cm -e trace=write -e inject=write:delay_enter=100000)
	by_cm "$@"
}

all() {
	local family=$1 client=$2 name
	way "$family" "$client"
	name="$family, from $from"
	t "rping, $name" ping
	t "ucmatose, $name" connections
	t "udaddy, $name" datagrams
	t "rstream, $name" stream
	t "riostream, $name" iostream
	t "ib_send_bw -R, $name" by_cm ib_send_bw -n 200 -s 4096
	t "ib_read_lat -R, $name" by_cm ib_read_lat -n 200 -s 512
	# Linux has no IPv6 groups for RoCEv2; the other two talk IPv4 beside RDMA.
	[ "$family" = ipv6 ] && return
	t "mckey, $name" group
	t "cmtime, $name" many
	t "rcopy, $name" copy
}

# Without rdma_cm: the GID index is that of the IPv4 or the IPv6 address.
pingpong() {
	local program=$1 gid=$2
	shift 2
	both 'tcp_listens 18515' "ibv_$program" -d "$other" -g "$gid" -n 200 "$@" -- \
		"ibv_$program" -d "$nic" -g "$gid" -n 200 "$@" "$address"
}
perftest() {
	local program=$1
	shift
	both 'tcp_listens 18515' "$program" -d "$other" -x 1 -F -n 200 "$@" -- \
		"$program" -d "$nic" -x 1 -F -n 200 "$@" "$address"
}
unreliable() {
	way ipv4 "$1"
	t "ibv_ud_pingpong, from $from" pingpong ud_pingpong 1 -c -s 1000
	t "ibv_ud_pingpong -e, from $from" pingpong ud_pingpong 1 -c -e -s 1000
	t "ibv_uc_pingpong, from $from" pingpong uc_pingpong 1 -c -s 10000
	t "ib_send_bw -c UD, from $from" perftest ib_send_bw -c UD -s 1024
	t "ib_send_lat -c UD, from $from" perftest ib_send_lat -c UD -s 1024
	# With events it arms before it polls.
	t "ib_send_lat -e, from $from" perftest ib_send_lat -e -s 1024
	t "ib_send_lat -e -c UD, from $from" perftest ib_send_lat -e -c UD -s 1024
	t "ib_send_bw -c UC, from $from" perftest ib_send_bw -c UC -s 8192
	t "ib_write_bw -c UC, from $from" perftest ib_write_bw -c UC -s 8192
	t "ib_write_lat -c UC, from $from" perftest ib_write_lat -c UC -s 8192
}

has_gid() { grep -qs "$(printf 'ffff:%02x%02x:%02x%02x' ${2//./ })" "/sys/class/infiniband/$1/ports/1/gids/"*; }
add_vlans() {
	local i
	for i in 0 1; do
		ip -n "${spaces[i]}" link add link "skua$i" name "skua$i.7" type vlan id 7 &&
			ip -n "${spaces[i]}" address add "${vlan[i]}/24" dev "skua$i.7" &&
			ip -n "${spaces[i]}" link set "skua$i.7" up &&
			within 5 has_gid "skua_$i" "${vlan[i]}" || return
	done
}
remove_vlans() {
	local i
	for i in 0 1; do
		ip -n "${spaces[i]}" link del "skua$i.7" || return
	done
}
no_vlan_gids() { ! has_gid skua_0 "${vlan[0]}" && ! has_gid skua_1 "${vlan[1]}"; }
log_is_quiet() { ! dmesg | grep -v 'module verification' | grep -E 'WARNING|BUG|skua.*(error|failed|dead)'; }

for client in "${clients[@]}"; do
	all ipv4 "$client"
	all ipv6 "$client"
	unreliable "$client"
done
t 'ib_send_bw -R, with a slow server' slowly ib_send_bw -n 200 -s 4096
t 'VLANs give GIDs' add_vlans
for client in "${clients[@]}"; do all vlan "$client"; done
t 'VLANs go' remove_vlans
t 'their GIDs, too' within 5 no_vlan_gids
t 'the log is quiet' log_is_quiet
end
