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

# The counters of the RDMA device that the NIC has under the same names.
of_rdma_by_name() { of_rdma "skua_$1" | join - <(of_nic "skua$1" | cut -d' ' -f1); }

# mlx5's and rxe's names of counters that the NIC has, too: ALIAS NAME.
aliases() {
	cat <<-END
		duplicate_request duplicates
		local_ack_timeout_err ack_timeouts
		np_cnp_sent cnp_sent
		np_ecn_marked_roce_packets rdma_rx_ecn_marked
		out_of_seq_request out_of_order
		out_of_sequence out_of_order
		packet_seq_err seq_nak_received
		rcvd_pkts rdma_rx_packets
		rcvd_rnr_err rnr_nak_received
		rcvd_seq_err seq_nak_received
		rdma_sends rdma_tx_send
		resp_remote_access_errors access_nak_sent
		rnr_nak_retry_err rnr_nak_received
		rp_cnp_handled cnp_received
		rx_atomic_requests rdma_rx_atomic
		rx_icrc_encapsulated rdma_rx_bad_icrc
		rx_read_requests rdma_rx_read
		rx_write_requests rdma_rx_write
		send_rnr_err rnr_nak_sent
		sent_pkts rdma_tx_packets
	END
}
# Counters that are 0 agree whatever they are, and so do equal ones. So each of them has to count something on both NICs, and
# each something else. On go-back-N, a lost packet causes NAKs; an outage causes timeouts.
distinct() {
	local names values
	names=$(aliases | awk '{ print $2 }' | sort -u)
	values=$(of_nic "skua$1" | join - <(echo "$names"))
	echo "$values"
	[ "$(wc -l <<<"$values")" = "$(wc -l <<<"$names")" ] && ! grep ' 0$' <<<"$values" &&
		[ -z "$(cut -d' ' -f2 <<<"$values" | sort | uniq -d)" ]
}
trouble() {
	local status=0
	skuactl inject skua0 go-back-n && skuactl inject skua1 go-back-n &&
		skuactl impair skua0 drop=2% drop=0.2%,for=20ms duplicate=2% corrupt=2% reorder=2% ecn=every:10 || return
	left rdma_traffic -Q -n 200 -s 0-20000 skua_0 skua_1 || status=1
	skuactl impair skua0 none
	skuactl inject skua0 none && skuactl inject skua1 none && return $status
}
# Chance says how long that takes. The traffic is right each time.
troubled() {
	local end=$((SECONDS + 60 * slowness))
	trouble || return
	until both distinct; do
		[ $SECONDS -lt $end ] && trouble || return
	done
}
# The responder refuses some requests.
refused() { left python3 "$(dirname "$0")/refusals.py"; }
# Each has the value of the NIC's counter; and the RDMA device has no other names.
aliases_agree() {
	local alias name counters=/sys/class/infiniband/skua_$1/ports/1/hw_counters nic
	nic=$(of_nic "skua$1")
	while read -r alias name; do
		[ "$(cat "$counters/$alias")" = "$(value "$name" <<<"$nic")" ] || return
	done < <(aliases)
	diff <(of_rdma "skua_$1" | cut -d' ' -f1) <({ aliases; echo "$nic"; } | cut -d' ' -f1 | sort)
}
# What monitoring reads of a port, in words of 4 bytes.
port_counters_agree() {
	local counters=/sys/class/infiniband/skua_$1/ports/1/counters nic
	nic=$(of_nic "skua$1")
	[ "$(cat $counters/port_xmit_packets)" = "$(value rdma_tx_packets <<<"$nic")" ] &&
		[ "$(cat $counters/port_rcv_packets)" = "$(value rdma_rx_packets <<<"$nic")" ] &&
		[ "$(cat $counters/port_xmit_data)" = $(($(value rdma_tx_bytes <<<"$nic") / 4)) ] &&
		[ "$(cat $counters/port_rcv_data)" = $(($(value rdma_rx_bytes <<<"$nic") / 4)) ] &&
		[ "$(cat $counters/port_rcv_errors)" = $(($(value rdma_rx_bad_packet <<<"$nic") +
			$(value rdma_rx_bad_icrc <<<"$nic") + $(value rdma_rx_bad_opcode <<<"$nic"))) ]
}
link_downed() { cat /sys/class/infiniband/skua_0/ports/1/counters/link_downed; }

# Some 2,500,000 bytes, of which chance decides how many go which way.
moved() {
	left ping -q -c 3 -i 0.2 -s 1400 192.0.2.2 >/dev/null &&
		left rdma_traffic -Q -n 200 -s 0-70000 skua_0 skua_1 &&
		[ "$(of_nic skua0 | value rdma_tx_bytes)" -gt 300000 ] &&
		[ "$(of_nic skua0 | value rdma_rx_bytes)" -gt 300000 ] &&
		[ "$(of_nic skua1 | value tx_frames)" -gt 3 ]
}

# A frame of the network's own may pass in between; so they are compared again.
equal() {
	local nic
	for nic in 0 1; do
		diff <(of_nic "skua$nic") <("$@" "$nic") || return
	done
}
both() { "$1" 0 && "$1" 1; }
netdev_of() { if [ "$1" = 0 ]; then of_netdev left skua0; else of_netdev right skua1; fi; }
rdma_of() { of_rdma_by_name "$1"; }
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
link_downs_are_counted() {
	local before
	before=$(link_downed)
	link_follows && link_follows && echo "$before, $(link_downed)" && [ "$(link_downed)" = $((before + 2)) ]
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


# The driver's details of objects, and a QP's attributes as the device has them.
details() {
	left rdma_traffic -Q -n 4 -q 1 -s 0-20000 -H 6 skua_0 skua_1 >/tmp/traffic &
	local traffic=$! status=0
	within 20 grep -q verified /tmp/traffic || status=1
	rdma -dd resource show qp link skua_0/1 type RC | grep 'drv_max_send_wr 4 drv_max_recv_wr 4 drv_max_send_sge 4' || status=1
	rdma -dd resource show mr dev skua_0 | grep 'drv_pinned_pages [1-9][0-9]* drv_max_fast_entries 0' || status=1
	rdma -dd resource show cq dev skua_0 | grep -w drv_cqn || status=1
	[ "$(rdma -r resource show qp link skua_0/1 | wc -c)" -gt 300 ] || status=1
	wait $traffic && return $status
}
objects() { python3 "$(dirname "$0")/resources.py"; }
# Counters that mlx5 has on demand. Those that are always there cannot be chosen.
of_rdma_on_demand() { of_rdma skua_0 | grep '^cc_'; }
on_demand_agree() {
	local nic
	nic=$(of_nic skua0)
	[ "$(value rdma_rx_ecn_marked <<<"$nic")" -gt 0 ] && [ "$(value cnp_sent <<<"$nic")" -gt 0 ] &&
		diff <(of_rdma_on_demand) <(echo cc_rx_ce_pkts "$(value rdma_rx_ecn_marked <<<"$nic")"
			echo cc_tx_cnp_pkts "$(value cnp_sent <<<"$nic")")
}
choose() { rdma statistic set link skua_0/1 optional-counters "$1"; }
on_demand() {
	local name status=0
	for name in cc_rx_ce_pkts cc_rx_cnp_pkts cc_tx_cnp_pkts; do
		rdma statistic mode supported link skua_0/1 | grep -w $name || return
	done
	! rdma statistic mode supported link skua_0/1 | grep -w rdma_rx_packets && ! of_rdma_on_demand &&
		choose cc_rx_ce_pkts,cc_tx_cnp_pkts && skuactl impair skua0 ecn=every:10 || return
	left rdma_traffic -Q -n 400 -s 0-20000 skua_0 skua_1 || status=1
	skuactl impair skua0 none
	[ "$(rdma statistic mode link skua_0/1 | grep -o 'cc_[a-z_]*' | xargs)" = 'cc_rx_ce_pkts cc_tx_cnp_pkts' ] || status=1
	! choose rdma_rx_packets && ! choose nonsense && within 5 on_demand_agree || status=1
	rdma statistic unset link skua_0/1 optional-counters && ! of_rdma_on_demand && return $status
}
# The sum of NAME over the counters that QPs of a device are bound to.
of_qps() { rdma statistic qp show link "$1/1" | grep -o "\<$2 [0-9]*" | awk '{ sum += $2 } END { print sum + 0 }'; }
# A program's own counter, from its first QP on; what it has counted stays in the port's when it is gone.
counters_of_a_program() {
	rdma statistic qp set link skua_0/1 auto type,pid on || return
	left rdma_traffic -Q -n 400 -q 3 -s 0-20000 -H 4 skua_0 skua_1 >/tmp/traffic &
	local traffic=$! status=0
	within 20 grep -q verified /tmp/traffic || status=1
	rdma statistic qp show link skua_0/1
	[ "$(rdma statistic qp show link skua_0/1 | grep -c 'cntn')" = 1 ] || status=1
	[ "$(of_qps skua_0 rdma_tx_write)" -gt 0 ] && [ "$(of_qps skua_1 rdma_tx_write)" = 0 ] || status=1
	within 5 equal rdma_of || status=1
	wait $traffic || status=1
	rdma statistic qp set link skua_0/1 auto off || status=1
	[ -z "$(rdma statistic qp show link skua_0/1)" ] && within 5 equal rdma_of && return $status
}
# Some RC QP of skua_0, as `rdma resource` shows it, and by itself in a counter.
an_rc_qp() { rdma resource show qp link skua_0/1 type RC | grep -om1 'lqpn [0-9]*'; }
bind_an_rc_qp() {
	local qpn
	within 10 eval 'qpn=$(an_rc_qp)' && rdma statistic qp bind link skua_0/1 $qpn &&
		! rdma statistic qp bind link skua_0/1 $qpn 2>/dev/null &&
		rdma statistic qp show link skua_0/1 | grep "LQPN: <${qpn#lqpn }>"
}
sent_by_bound() { of_qps skua_0 rdma_tx_packets; }
sent_by_all() { of_nic skua0 | value rdma_tx_packets; }
# One QP of three, by hand: it counts what it does from then on, which is a third of what the NIC does meanwhile. The QPs
# are idle when the counters are read for the last time.
# shellcheck disable=SC2154 # tap.sh sets slowness
counters_by_hand() {
	rm -f /tmp/by_hand
	left rdma_traffic -Q -t $((8 * slowness)) -q 3 -s 0-20000 -H $((60 * slowness)) skua_0 skua_1 >/tmp/by_hand &
	local traffic=$! status=0 before after bound all
	before=$(sent_by_all)
	within 10 eval '[ "$(sent_by_all)" -gt $((before + 100)) ]' || status=1
	before=$(sent_by_all)
	bind_an_rc_qp || status=1
	after=$(sent_by_all)
	within 30 grep -q verified /tmp/by_hand || status=1
	bound=$(sent_by_bound) all=$(sent_by_all)
	tell "one queue pair of three sent $bound packets of $((all - after)) to $((all - before))"
	[ $((2 * bound)) -lt $((all - after)) ] && [ $((6 * bound)) -gt $((all - before)) ] || status=1
	kill $traffic
	wait $traffic
	within 5 equal rdma_of && return $status
}
# Of the counters on demand, a QP's counter has those that the port has when the QP is bound. Kernels before 7 show none.
counters_on_demand_by_hand() {
	local pid status=0 shown=0
	[ "$(uname -r | cut -d . -f 1)" -lt 7 ] || shown=1
	rm -f /tmp/idle
	left rdma_traffic -Q -n 4 -q 1 -s 0-20000 -H $((60 * slowness)) skua_0 skua_1 >/tmp/idle &
	pid=$!
	within 20 grep -q verified /tmp/idle && choose cc_tx_cnp_pkts && bind_an_rc_qp || status=1
	[ "$(rdma statistic qp show link skua_0/1 | grep -o 'cc_[a-z_]*' | xargs)" = \
		"$([ $shown = 0 ] || echo cc_tx_cnp_pkts)" ] || status=1
	rdma statistic unset link skua_0/1 optional-counters || status=1
	kill $pid
	wait $pid
	return $status
}
# One that is idle counts nothing, whatever the others do.
counters_of_an_idle_qp() {
	rm -f /tmp/idle
	left rdma_traffic -Q -n 4 -q 1 -s 0-20000 -H $((60 * slowness)) skua_0 skua_1 >/tmp/idle &
	local idle=$! status=0 before
	within 20 grep -q verified /tmp/idle && bind_an_rc_qp || status=1
	before=$(sent_by_all)
	left rdma_traffic -Q -n 100 -s 0-20000 skua_0 skua_1 || status=1
	[ "$(sent_by_all)" -gt $((before + 100)) ] && [ "$(sent_by_bound)" = 0 ] || status=1
	rdma statistic qp show link skua_0/1 | grep LQPN || status=1
	kill $idle
	wait $idle
	within 5 equal rdma_of && return $status
}

t 'traffic' moved
t 'requests that are refused' refused
t 'traffic that is impaired' troubled
t 'the NIC has counters' many
t 'ethtool -S agrees' within 5 equal netdev_of
t 'rdma statistic agrees' within 5 equal rdma_of
t 'counters by other names agree' within 5 both aliases_agree
t 'counters of the port agree' within 5 both port_counters_agree
t 'ip -s agrees' within 8 stack_agrees
t 'the link, everywhere' link_follows
t 'losses of the link are counted' link_downs_are_counted
t 'the MTU' mtu_follows
t 'rdma resource agrees' within 5 resources_agree
t 'rdma resource tells details' details
t 'rdma resource tells what the NIC does, of all objects' objects
t 'counters on demand' on_demand
t 'rdma statistic counts what a program does' counters_of_a_program
t 'rdma statistic counts what one queue pair does' counters_by_hand
t 'rdma statistic counts nothing of an idle queue pair' counters_of_an_idle_qp
t 'rdma statistic of a queue pair has the counters on demand' counters_on_demand_by_hand
end
