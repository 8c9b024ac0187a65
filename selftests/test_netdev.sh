#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The Ethernet side of the NICs, and the GID table that follows it.

. "$(dirname "$0")/tap.sh"

has_gid() { grep -qs "$1" /sys/class/infiniband/skua_0/ports/1/gids/*; }
no_gid() { ! has_gid "$1"; }
port_is() { grep -q "$1" /sys/class/infiniband/skua_0/ports/1/state; }

# both COMMAND...: for either NIC, in its namespace, DEV standing for its name.
both() {
	left "${@//DEV/skua0}" && right "${@//DEV/skua1}"
}
# Debian's queueing discipline drops what waits for 5 ms, on a slow machine a fragment of each datagram.
queueing() {
	sysctl -q -w net.core.default_qdisc="$1" && both tc qdisc replace dev DEV root mq
}
frames() {
	local space=$1
	shift
	"$space" python3 -IS ./frames.py "$@"
}

# A counter of `ethtool -S`, and of the network stack.
counter() { left ethtool -S skua0 | awk -v name="$1:" '$1 == name { print $2 }'; }
stack() { left cat "/sys/class/net/skua0/statistics/$1"; }
# of_udp NAME: what the right side's stack counted.
of_udp() {
	right awk -v name="$1" '$1 != "Udp:" { next }
		!n { for (i = 2; i <= NF; i++) if ($i == name) n = i; next }
		{ print $n }' /proc/net/snmp
}

ping4() { left ping -q -c 3 -i 0.2 -W 2 192.0.2.2; }
ping6() { left ping -q -c 3 -i 0.2 -W 2 2001:db8::2; }
ping_size() { left ping -q -c 1 -W 2 -M "do" -s "$1" 192.0.2.2; }
sizes() {
	local size
	for size; do
		ping_size "$size" || return
	done
}
too_long() { ! ping_size "$1"; }
fragments() { left ping -q -c 3 -i 0.2 -W 2 -s 60000 192.0.2.2; }

# send_file FROM TO ADDRESS: the file goes by TCP from one namespace to another.
send_file() {
	"$2" timeout 30 nc -l -N "$3" 5001 >/tmp/tcp.in &
	within 5 "$2" sh -c 'ss -ltnH | grep -q :5001'
	"$1" timeout 30 nc -N "$3" 5001 </tmp/tcp.out && wait $! && cmp /tmp/tcp.in /tmp/tcp.out
}
tcp() { send_file left right 192.0.2.2 && send_file right left 192.0.2.1; }
udp() { frames left udp 192.0.2.2 "${1:-100}" "${2:-1472}" "${@:3}"; }
offloads() {
	both ethtool -K DEV tx "$1" rx "$2" sg "$3" && tcp && udp 60 60000
}
offered() {
	local feature
	left ethtool -k skua0 >/tmp/features
	for feature in tx-checksum-ip-generic rx-checksumming scatter-gather receive-hashing tcp-segmentation-offload \
		tx-tcp-segmentation tx-tcp6-segmentation tx-tcp-ecn-segmentation; do
		grep -x "[[:space:]]*$feature: on" /tmp/features || return
	done
}
# Messages of many sizes by IPv4 and IPv6, to each side, with their digests.
stream() {
	frames left stream 192.0.2.2,2001:db8::2 "$1" && frames right stream 192.0.2.1,2001:db8::1 "$1"
}
tso() { both ethtool -K DEV tso "$1"; }
# Hardly one segment of the left side's is sent again, of 2000 and more for each address.
sent_again() { left awk '$1 == "Tcp:" { n = $13 } END { print n }' /proc/net/snmp; }
segments() {
	local before
	tso "$1" && before=$(sent_again) && stream 3000000 && [ $(($(sent_again) - before)) -lt 50 ]
}
# What the stack gives the driver: whole pieces of the stream, or frames. TCP makes its pieces as long as a millisecond
# of its rate, which is little on a slow machine, but never shorter than it is told here.
pieces() {
	local most
	tso "$1" && left sysctl -qw net.ipv4.tcp_min_tso_segs=4 || return
	frames left longest skua0 6 >/tmp/longest &
	sleep 1
	frames left stream 192.0.2.2 2000000 && wait $! || return
	left sysctl -qw net.ipv4.tcp_min_tso_segs=2
	most=$(</tmp/longest)
	echo "the longest: $most"
	if [ "$1" = on ]; then
		[ "$most" -gt 4000 ]
	else
		[ "$most" -le 1514 ]
	fi
}
# The stack's counters and the device's grow alike: each frame counts, and its headers.
excess() { echo $(($(stack tx_packets) - $(counter tx_frames))) $(($(stack tx_bytes) - $(counter tx_bytes))); }
counted() { [ "$(excess)" = "$1" ] || { excess; return 1; }; }
segments_counted() {
	local before
	tso on && sleep 1
	before=$(excess)
	echo "before: $before"
	frames left stream 192.0.2.2 1000000 && within 5 counted "$before"
}
# vlan_between NAME PARENT_0 PARENT_1 NETWORK OPTION...: an interface on either side.
vlan_between() {
	local name=$1 parent0=$2 parent1=$3 network=$4
	shift 4
	left ip link add link "$parent0" name "$name" type vlan "$@" &&
		right ip link add link "$parent1" name "$name" type vlan "$@" &&
		left ip address add "198.51.$network.1/24" dev "$name" &&
		right ip address add "198.51.$network.2/24" dev "$name" &&
		left ip link set "$name" up && right ip link set "$name" up
}
# One tag is the device's to look behind. Others are not, and the stack cuts frames itself. The NIC's frames have room
# for one tag, so what is behind two has a smaller MTU (ETH-4).
segments_behind_tags() {
	local status
	both sysctl -qw net.ipv4.tcp_min_tso_segs=4
	tso on && vlan_between tag skua0 skua1 101 id 7 && vlan_between tags tag tag 102 id 8 &&
		both ip link set tags mtu 1496 && vlan_between outer skua0 skua1 103 proto 802.1ad id 9 &&
		frames left stream 198.51.101.2 2000000 && frames left stream 198.51.102.2,198.51.103.2 1000000 &&
		frames right stream 198.51.101.1 2000000
	status=$?
	both sysctl -qw net.ipv4.tcp_min_tso_segs=2
	both ip link del outer
	both ip link del tag
	return $status
}
segments_of_mtus() {
	local mtu
	tso on
	for mtu in 1280 1499 4000 9000 1500; do
		set_mtu $mtu && stream 600000 || return
	done
}
# How many frames the rules did something to.
impaired() { skuactl impair skua0 | awk 'NR > 1 { sum += $NF } END { print sum + 0 }'; }
# Lost, reordered and duplicated. What is changed on its way is noticed by its checksum.
impaired_segments() {
	local status rule
	tso on
	both sysctl -q -w net.ipv4.tcp_ecn=1
	for rule in drop=1% reorder=3%,by=2ms duplicate=5% corrupt=1% ; do
		skuactl impair skua0 "$rule" "seed=7" && frames left stream 192.0.2.2 1500000 &&
			frames right stream 2001:db8::1 1500000
		status=$?
		echo "$rule: $(impaired) frames"
		[ "$(impaired)" -gt 0 ] || status=1
		skuactl impair skua0 none >/dev/null
		[ $status = 0 ] || break
	done
	both sysctl -q -w net.ipv4.tcp_ecn=2
	return $status
}
# Of all protocols, on either side.
no_csum_errors() {
	local counts
	counts=$(both nstat -az) && [ "$(grep -cE '^(Icmp|Tcp|Udp)InCsumErrors ' <<<"$counts")" = 6 ] &&
		! awk '/InCsumErrors/ && $2 > 0' <<<"$counts" | grep .
}
wrong_checksums() {
	local ports errors
	ports=$(of_udp NoPorts) errors=$(of_udp InCsumErrors)
	frames left csum skua0 "$mac" 192.0.2.1 192.0.2.2 good 30 &&
		frames left csum skua0 "$mac" 192.0.2.1 192.0.2.2 bad 20 || return
	sleep 1
	echo "$(of_udp NoPorts) of $((ports + 30)), $(of_udp InCsumErrors) of $((errors + 20))"
	[ "$(of_udp NoPorts)" = $((ports + 30)) ] && [ "$(of_udp InCsumErrors)" = $((errors + 20)) ]
}
at_least() { [ "$(counter "$1")" -ge "$2" ] || { counter "$1"; return 1; }; }
# On a slow machine the queueing discipline drops some of them.
garbage() {
	local before
	before=$(counter tx_frames)
	frames left garbage skua0 "$mac" 3000 && within 10 at_least tx_frames $((before + 2000)) && ping4
}

driver_name() { left ethtool -i skua0 | grep -qx 'driver: skua'; }
counts_frames() {
	local before after
	before=$(stack tx_packets)
	ping4 >/dev/null
	after=$(stack tx_packets)
	[ "$after" -ge $((before + 3)) ]
}
# The device's count, the driver's by channel, and the stack's: they agree as soon as nothing is on its
# way. What one of them has missed it misses for good.
agreement() {
	local direction of
	for direction in rx tx; do
		for of in frames bytes; do
			echo "$direction $of: $(counter ${direction}_$of)," \
			     "$(counter ${direction}0_$of) + $(counter ${direction}1_$of)," \
			     "$(stack "${direction}_${of/frames/packets}")"
			[ "$(stack "${direction}_${of/frames/packets}")" = \
			  $(($(counter ${direction}0_$of) + $(counter ${direction}1_$of))) ] || return
		done
		# A frame that is sent without a link is not the device's, but the driver's.
		[ "$(stack ${direction}_packets)" -ge "$(counter ${direction}_frames)" ] || return
	done
	[ "$(stack rx_bytes)" = "$(counter rx_bytes)" ]
}
counts_agree() {
	both sysctl -q -w net.ipv6.conf.DEV.disable_ipv6=1
	within 20 agreement
	local status=$?
	both sysctl -q -w net.ipv6.conf.DEV.disable_ipv6=0
	left ip address replace 2001:db8::1/64 dev skua0 nodad
	right ip address replace 2001:db8::2/64 dev skua1 nodad
	return $status
}

channels_are() { left ethtool -l skua0 | awk '/Combined/ { print $2 }' | xargs | grep -x "2 $1"; }
# growth_of COMMAND...: what each of the four rings carried meanwhile.
growth_of() {
	local name before=()
	for name in rx0 rx1 tx0 tx1; do
		before+=("$(counter ${name}_frames)")
	done
	"$@" || return
	growth=()
	for name in rx0 rx1 tx0 tx1; do
		growth+=($(($(counter ${name}_frames) - before[${#growth[@]}])))
	done
	echo "${growth[@]}"
}
spread() {
	channels_are 2 && growth_of frames left flows 192.0.2.2 24 && [ "${growth[0]}" -ge 100 ] &&
		[ "${growth[1]}" -ge 100 ] && [ $((growth[2] + growth[3])) -ge 480 ]
}
# A table that the user made stays, where the number of channels lets it.
steered() {
	left ethtool -X skua0 equal 1 && left ethtool -L skua0 combined 1 &&
		left ethtool -L skua0 combined 2 && growth_of frames left flows 192.0.2.2 24 &&
		[ "${growth[0]}" -ge 480 ] && [ "${growth[1]}" -lt 20 ] &&
		left ethtool -X skua0 start 1 equal 1 && growth_of frames left flows 192.0.2.2 24 &&
		[ "${growth[1]}" -ge 480 ] && ! left ethtool -L skua0 combined 1 &&
		left ethtool -X skua0 default && spread
}
table_names_one() { ! left ethtool -x skua0 | grep -E '^ *[0-9]+:.* [1-9]'; }
channels() {
	left ethtool -L skua0 combined 1 && channels_are 1 && table_names_one && ping4 && udp && tcp &&
		! left ethtool -L skua0 combined 3 && ! left ethtool -L skua0 combined 0 &&
		left ethtool -L skua0 combined 2 && spread
}
# pktgen COUNT SIZE sends one frame again and again, for ever if COUNT is 0, by the queue that it chose at first.
pktgen() {
	modprobe pktgen && left bash -s -- "$mac" "$@" <<-'END'
		set -e
		order() { echo "${@:2}" >"/proc/net/pktgen/$1"; }
		order kpktgend_0 rem_device_all
		order kpktgend_0 add_device skua0
		for words in "count $2" 'clone_skb 1000000000' "pkt_size $3" 'queue_map_min 1' 'queue_map_max 1' \
			'dst 192.0.2.2' "dst_mac $1"; do
			order skua0 "$words"
		done
		order pgctrl start
	END
}
pktgen_sends() { [ "$(awk '$1 == "pkts-sofar:" { print $2 }' < <(left cat /proc/net/pktgen/skua0))" -gt "$1" ]; }
pktgen_without_its_channel() {
	local status=0 i
	channels_are 2 || return
	pktgen 0 200 &
	within 10 pktgen_sends 1000 || status=1
	for i in 1 2 3; do
		left ethtool -L skua0 combined 1 && sleep 0.5 && left ethtool -L skua0 combined 2 || status=1
	done
	left bash -c 'echo stop >/proc/net/pktgen/pgctrl'
	wait $! || status=1
	modprobe -r pktgen && [ $status = 0 ] && ping4 && spread
}
# pktgen_counts COUNTER COUNT SIZE LEAST: the counter of the stack grows by so much at least while pktgen sends.
pktgen_counts() {
	local before status
	before=$(stack "$1")
	pktgen "$2" "$3"
	status=$?
	modprobe -r pktgen && [ $status = 0 ] && [ $(($(stack "$1") - before)) -ge "$4" ] && ping4
}
# A line that is slower than the sender, who has to wait: nothing is lost, and no more is sent than there is room for.
full_ring() {
	local status
	left ethtool -G skua0 tx 128 && skuactl impair skua0 rate=20M,dir=out && pktgen_counts tx_packets 2000 1000 2000
	status=$?
	skuactl impair skua0 none >/dev/null
	left ethtool -G skua0 tx 2048 && [ $status = 0 ] && ping4
}
# ETH-4: pktgen looks at no MTU. The driver drops what is too long, and pads to 60 bytes what is too short for Ethernet.
frames_too_long() { pktgen_counts tx_dropped 20 3000 20; }
frames_too_short() { pktgen_counts tx_bytes 1000 42 60000; }
rings_are() { left ethtool -g skua0 | awk '/^RX:|^TX:/ { print $2 }' | xargs | grep -x "4096 16384 $1"; }
rings() {
	rings_are '512 2048' && left ethtool -G skua0 rx 16 tx 100 && rings_are '16 128' && tcp && udp &&
		! left ethtool -G skua0 rx 8 && ! left ethtool -G skua0 tx 32 &&
		! left ethtool -G skua0 rx 5000 && left ethtool -G skua0 rx 4096 tx 16384 &&
		rings_are '4096 16384' && tcp && left ethtool -G skua0 rx 512 tx 2048
}
set_mtu() { both ip link set DEV mtu "$1"; }
jumbo() {
	set_mtu 9000 && sizes 1473 4096 8971 8972 && too_long 8973 && fragments && tcp &&
		udp 100 8972 && udp 30 60000
}
# PRT-6: headers of a packet take up to 96 bytes of the MTU. Both ports still have 9000 at the end,
# so that each takes what the other sends while the tests that follow change it.
rdma_mtus() {
	local mtu active
	while read -r mtu active; do
		set_mtu "$mtu" && ibv_devinfo -d skua_0 | grep "active_mtu:[[:space:]]*$active " || return
	done <<-END
		1280 1024
		2143 1024
		2144 2048
		4191 2048
		4192 4096
		9000 4096
	END
}
bad_mtus() { ! left ip link set skua0 mtu 9001 && ! left ip link set skua0 mtu 67; }

# Without checksums there is no segmentation.
offload() {
	case $1 in
	2) left ethtool -K skua0 tx on tso off ;;
	4 | 6) left ethtool -K skua0 tx on tso on ;;
	*) left ethtool -K skua0 tx off ;;
	esac
}
# Everything is changed while frames are on their way; a transfer goes on and loses nothing.
changes_under_traffic() {
	local i
	while [ -e /tmp/changing ]; do
		tcp && udp 20 60000 40 || exit 1
	done &
	for i in 1 2 3 4 5 6; do
		left ethtool -G skua0 rx $((64 << i % 3)) tx $((128 << i % 2)) &&
			left ip link set skua0 mtu $((i % 2 ? 1500 : 9000)) &&
			left ethtool -L skua0 combined $((1 + i % 2)) &&
			offload "$i" || { i=failed; break; }
		sleep 0.2
	done
	rm /tmp/changing
	wait $! && [ "$i" = 6 ] && left ethtool -G skua0 rx 512 tx 2048 && set_mtu 1500
}
# A frame that was sent meanwhile must not wake a queue whose ring is about to go.
changes_under_flood() {
	local i flood=()
	for i in 1 2 3; do
		frames left garbage skua0 "$mac" 10000 &
		flood+=($!)
	done
	for i in {1..15}; do
		left ethtool -G skua0 tx $((128 << i % 2)) || { i=failed; break; }
	done
	wait "${flood[@]}"
	left ethtool -G skua0 tx 2048 && [ "$i" = 15 ] && within 5 ping4
}
down_under_traffic() {
	local i
	left ping -q -f -w 4 192.0.2.2 >/dev/null &
	for i in 1 2 3 4 5; do
		left ip link set skua0 down && left ip link set skua0 up || { i=failed; break; }
		sleep 0.2
	done
	wait $!
	left ip address replace 2001:db8::1/64 dev skua0 nodad
	[ "$i" = 5 ] && within 5 ping4
}

# How often a GID was given to the device, or taken from it (SKUA_CMD_SET_GID).
gids_set() {
	awk '$1 == "0x0006" { n = $2 } END { print n + 0 }' \
		"/sys/kernel/debug/skua/$(basename "$(readlink -f /sys/class/infiniband/skua_0/device)")/commands"
}
has_set_gids() { [ "$(gids_set)" -ge "$1" ]; }
ipv4_gid() {
	local before
	before=$(gids_set)
	no_gid ffff:c633:6401 &&
		left ip address add 198.51.100.1/24 dev skua0 && within 5 has_gid ffff:c633:6401 &&
		left ip address del 198.51.100.1/24 dev skua0 && within 5 no_gid ffff:c633:6401 &&
		within 5 has_set_gids $((before + 2))
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
# PRT-7: the port is pinned, as skuad is not told otherwise.
spoofed() { [ "$(counter tx_spoofed)" -gt "$1" ]; }
pinned() {
	local own before status
	own=$(left cat /sys/class/net/skua0/address)
	before=$(counter tx_spoofed)
	# Only an interface that is down may change it.
	left sysctl -q -w net.ipv6.conf.skua0.keep_addr_on_down=1
	left ip link set skua0 down
	left ip link set skua0 address 02:00:00:00:00:77 2>&1 | grep 'Operation not permitted' &&
		left ip link set skua0 address "$own" && left ip link set skua0 up && within 5 ping4 &&
		left ip link add link skua0 name other0 type macvlan &&
		left ip link set other0 up && within 5 spoofed "$before" && ping4
	status=$?
	left ip link del other0
	left ip link set skua0 up
	return $status
}

cd "$(dirname "$0")" || exit 1
default_qdisc=$(sysctl -n net.core.default_qdisc)
queueing pfifo_fast || exit
mac=$(right cat /sys/class/net/skua1/address)
head -c 1000000 /dev/urandom >/tmp/tcp.out
touch /tmp/changing
right python3 ./frames.py echo 192.0.2.2 >/dev/null &
echo_server=$!
left python3 ./frames.py digest >/dev/null &
left_digest=$!
right python3 ./frames.py digest >/dev/null &
right_digest=$!

t 'ping over IPv4' ping4
t 'ping over IPv6' ping6
t 'frames of all kinds of sizes' sizes 0 1 17 18 19 100 1471 1472
t 'a packet longer than the MTU' too_long 1473
t 'fragments' fragments
t 'TCP both ways, compared' tcp
t 'UDP echoed, compared' udp
t 'ethtool knows the driver' driver_name
t 'checksums, scatter-gather and hashes are offered' offered
for tx in on off; do
	for rx in on off; do
		t "TCP and UDP with tx $tx, rx $rx, sg off" offloads $tx $rx off
	done
done
t 'TCP and UDP with all of them' offloads on on on
t 'TCP in segments of the device, compared' segments on
t 'TCP in segments of the stack, compared' segments off
t 'the stack gives whole pieces' pieces on
t 'the stack gives frames' pieces off
t 'segments count as frames' segments_counted
t 'segments behind VLAN tags' segments_behind_tags
t 'segments for each MTU' segments_of_mtus
t 'no checksum was wrong' no_csum_errors
t 'segments that are lost, reordered, duplicated and changed' impaired_segments
t 'wrong checksums are found' wrong_checksums
t 'garbage does no harm' garbage
t 'statistics count frames' counts_frames
t 'statistics agree' counts_agree
t 'flows are spread over channels' spread
t 'the indirection table' steered
t 'one channel, and two' channels
t 'pktgen goes on with a channel that is gone' pktgen_without_its_channel
t 'frames that are too long' frames_too_long
t 'frames that are too short' frames_too_short
t 'a ring that is full' full_ring
t 'sizes of rings' rings
t 'MTU 9000' jumbo
t 'MTUs that are refused' bad_mtus
t 'the MTU that RDMA is told' rdma_mtus
t 'MTU, rings, channels and offloads change under traffic' changes_under_traffic
t 'rings change under a flood' changes_under_flood
t 'down and up under traffic' down_under_traffic
t 'frames flow as at first' offloads on on on
t 'GIDs follow IPv4 addresses' ipv4_gid
t 'GIDs follow IPv6 addresses' ipv6_gid
t 'the port follows the network device' port_follows
t 'a MAC that is not its own' pinned
kill $echo_server $left_digest $right_digest
queueing "$default_qdisc"
end
