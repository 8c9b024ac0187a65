#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# devlink: what the device is, its port and parameters, its health, and reload. Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

handle=pci/$device
netdev=/sys/bus/pci/devices/$device/net

inject() { skuactl inject skua0 "$@"; }
ping4() { left ping -q -c 2 -i 0.2 -W 1 192.0.2.2; }

# json COMMAND... EXPRESSION: what devlink says, as x of an expression of Python; a false value fails, others are shown.
json() {
	devlink -j "${@:1:$#-1}" >/tmp/json || return
	python3 - "${@:$#}" <<-'END'
		import json, sys
		with open('/tmp/json') as file:
		    x = json.load(file)
		while isinstance(x, (dict, list)) and len(x) == 1:    # what says nothing but which device it is
		    x = x[0] if isinstance(x, list) else next(iter(x.values()))
		value = eval(sys.argv[1])
		print(value)
		sys.exit(not value)
	END
}
reporter() { json health show "$handle" reporter fatal "$1"; }
diagnosis() { json health diagnose "$handle" reporter fatal "$1"; }
# A dump that was kept stays until it is cleared.
dump() { json health dump show "$handle" reporter fatal "$1"; }
clear() { devlink health dump clear "$handle" reporter fatal; }
recover() { devlink health recover "$handle" reporter fatal; }
is_healthy() { reporter 'x["state"] == "healthy"'; }
is_in_error() { reporter 'x["state"] == "error"'; }
reload() { devlink dev reload "$handle"; }

# fails MESSAGE COMMAND...: with this message, a pattern.
fails() {
	local message=$1
	shift
	! "$@" 2>/tmp/errors && cat /tmp/errors && grep -q "$message" /tmp/errors
}
# rdma_traffic says that it was refused; it does not run into the timeout.
refuses() {
	left timeout $((20 * slowness)) rdma_traffic -Q -n 1 skua_0 skua_1
	local status=$?
	[ $status = 1 ] || [ $status = 2 ]
}
# dies FAULT: and stays dead.
dies() {
	stays_dead && clear && inject "$1" || return
	[ "$1" != command-timeout ] || left timeout $((20 * slowness)) ethtool -S skua0 >/dev/null
	within 15 is_in_error
}
rebind() { echo "$device" >$driver/unbind && echo "$device" >$driver/bind && dress && within 5 there; }

# As other tools tell.
info() {
	local guid firmware
	guid=$(tr -d : </sys/class/infiniband/skua_0/node_guid)
	firmware=$(cat /sys/class/infiniband/skua_0/fw_ver)
	json dev info "$handle" 'x["driver"] == "skua"' &&
		json dev info "$handle" "x['serial_number'].replace('-', '') == '$guid'" &&
		json dev info "$handle" "x['versions']['running'] == {'fw': '$firmware', 'fw.mgmt.api': '1.0'}"
}
# Of a device that was just bound: dress() has it stay dead.
a_healthy_device() {
	echo "$device" >$driver/unbind && echo "$device" >$driver/bind || return
	reporter 'x["state"] == "healthy" and x["error"] == 0 and x["recover"] == 0' &&
		reporter 'x["auto_recover"] and x["auto_dump"] and x["grace_period"] == 60000' &&
		diagnosis 'x == {"state": "alive", "status": "0x3"}' && recover
	local status=$?
	dress && within 5 there && works_in 5 && return $status
}
# The last command of the dump is the one that asked for its counters.
dump_of_a_device_that_lives() {
	clear && works && dump 'x["device"]["state"] == "alive"' || return
	dump 'x["registers"]["signature"] == "0x41554b53" and x["registers"]["status"] == "0x3"' &&
		dump 'len(x["commands"]["last"]) == 32 and x["commands"]["outstanding"] == []' &&
		dump 'all(c["answered"] and c["status"] == 0 for c in x["commands"]["last"])' &&
		dump '0 < x["commands"]["consumer_index"] <= x["commands"]["producer_index"]' &&
		dump 'len(x["event_queues"]) >= 3 and any(q["consumer_index"] > 0 for q in x["event_queues"])' &&
		dump "x['counters']['rdma_tx_packets'] == $(skuactl counters skua0 | awk '$1 == "rdma_tx_packets" { print $2 }')"
}
# A kept dump is of another time; after it is cleared it is of now.
dumps_are_kept() {
	local before='x["commands"]["producer_index"]' index
	clear && index=$(dump "$before") && works && dump "$before == $index" && clear && dump "$before > $index"
}

# A device that dies with this fault: what is told of its death; and it works again when it is recovered.
death() {
	local fault=$1 reason=$2 detail=$3 errors recoveries status
	errors=$(reporter 'x["error"] + 1') && recoveries=$(reporter 'x["recover"] + 1') && start_traffic -q 4 &&
		dies "$fault" && traffic_ends || return
	reporter "x['error'] == $errors" && diagnosis 'x["state"] == "dead"' && diagnosis "x['reason'] == '$reason'" &&
		diagnosis "$detail" && dump "x['device']['reason'] == '$reason' and 'counters' not in x" && refuses
	status=$?
	# Whoever waited for it may not have been told yet.
	[ "$fault" != command-timeout ] ||
		dump 'any(not c["answered"] for c in x["commands"]["last"] + x["commands"]["outstanding"])' || status=1
	recover && is_healthy && reporter "x['recover'] == $recoveries" && works_in 10 && return $status
}
# Frames that it would have sent are given back to their senders, though nobody takes the interface down.
frames_are_given_back() {
	stays_dead && clear && skuactl impair skua0 rate=100K,dir=out || return
	left python3 "$PWD/frames.py" owed 192.0.2.2 10 >/tmp/owed 2>&1 &
	within 5 grep -q full /tmp/owed && inject fatal && within 15 is_in_error
	local status=$?
	wait $! && [ $status = 0 ]
	status=$?
	cat /tmp/owed
	skuactl impair skua0 none && recover && is_healthy && within 5 ping4 && return $status
}
# What cannot be tried is not taken: it could keep the device from being brought up again. First, its queues have to go.
settings_are_refused() {
	dies fatal && sleep $slowness && ! left ethtool -G skua0 tx 128 && ! left ethtool -L skua0 combined 1 &&
		! left ip link set skua0 mtu 2000
	local status=$?
	recover && is_healthy && works_in 10 && left grep -qx 1500 /sys/class/net/skua0/mtu && return $status
}
# One that is gone cannot be recovered before it is back.
recovery_fails() {
	dies gone && fails 'cannot be brought up' recover && is_in_error &&
		diagnosis 'x["state"] == "dead" and x["reason"] == "it cannot be brought up"' &&
		dump 'x["registers"]["status"] == "0xffffffff"' && clear && dump '"commands" not in x' && refuses
	local status=$?
	inject none && recover && is_healthy && works_in 10 && return $status
}
reset_heals() {
	dies fatal && echo 1 >"/sys/bus/pci/devices/$device/reset" && is_healthy && works_in 10
}
reload_heals() { dies fatal && reload && is_healthy && works_in 10; }

has_recovered() { reporter "x['recover'] == $1 and x['state'] == 'healthy'"; }
# By itself, but not twice in a minute.
recovers_by_itself() {
	rebind && devlink health set "$handle" reporter fatal auto_recover true || return
	start_traffic -q 4 && inject fatal && traffic_ends && within 20 has_recovered 1 && works_in 10 &&
		dump 'x["device"]["state"] == "dead" and x["registers"]["signature"] == "0x41554b53"' &&
		inject fatal && within 15 is_in_error && ! within 3 is_healthy && refuses && recover && works_in 10 &&
		reporter 'x["error"] == 2 and x["recover"] == 2'
	local status=$?
	stays_dead && return $status
}
recovers_each_time() {
	local n
	rebind && devlink health set "$handle" reporter fatal auto_recover true grace_period 0 || return
	for n in 1 2 3; do
		start_traffic -q 4 && inject fatal && traffic_ends && within 20 has_recovered $n && works_in 10 || return
	done
	rebind
}
# The driver goes while it is about to recover the device.
unbound_while_it_recovers() {
	local delay
	for delay in 0 0.05 0.2 1 2.5; do
		devlink health set "$handle" reporter fatal auto_recover true grace_period 0 && inject fatal &&
			sleep $delay && rebind || return
	done
	works_in 10
}

reload_under_traffic() {
	local index before _
	index=$(left cat /sys/class/net/skua0/ifindex)
	before=$(ip -n left -o address show dev skua0)
	for _ in 1 2 3; do
		start_traffic -q 4 && reload && traffic_ends && within 10 there && works_in 10 || return
	done
	[ "$(left cat /sys/class/net/skua0/ifindex)" = "$index" ] &&
		[ "$(ip -n left -o address show dev skua0)" = "$before" ] && is_healthy
}
reload_while_down() {
	left ip link set skua0 down && reload && ! left grep -q up /sys/class/net/skua0/operstate &&
		left ip link set skua0 up && left ip address replace 2001:db8::1/64 dev skua0 nodad && works_in 10
}
listens() { right rdma resource show cm_id | grep -q 'state LISTEN'; }
ended() { ! kill -0 "$1" 2>/dev/null; }
# A reload ends connections, and the peer hears of it. This connection is idle, so the peer cannot find out by itself.
peer_is_told() {
	local server client
	right timeout $((60 * slowness)) rping -s -a 192.0.2.2 &
	server=$!
	within 10 listens && left timeout $((60 * slowness)) rping -c -a 192.0.2.2 &
	client=$!
	within 10 a_qp && pkill -STOP -f '^rping -c' && sleep 1 && ! ended $server && reload && within 5 ended $server
	local status=$?
	pkill -CONT -f '^rping -c'
	wait $client $server
	within 10 there && works_in 10 && return $status
}
bad_reloads() {
	fails 'moved one by one' devlink dev reload "$handle" netns left &&
		fails . devlink dev reload "$handle" action fw_activate &&
		fails . devlink dev reload "$handle" action driver_reinit limit no_reset && is_healthy && works
}

param() { devlink dev param "$1" "$handle" name enable_rdma "${@:2}"; }
rdma_is_enabled() { devlink dev param show "$handle" name enable_rdma | grep -q "cmode driverinit value $1"; }
no_rdma() { [ ! -e /sys/class/infiniband/skua_0 ] && [ -e /sys/class/infiniband/skua_1 ] && [ -e "$netdev" ]; }
with_rdma() { param set value true cmode driverinit && reload && within 10 there && works_in 10; }
without_rdma() { param set value false cmode driverinit && reload && no_rdma; }

# The first command after the reset fails, the next do not. Before it, RDMA's removal would send some.
reload_fails() {
	without_rdma && inject command-error 1 && fails 'cannot be brought up' reload && is_in_error && refuses &&
		inject none && recover && is_healthy && within 5 ping4 && inject command-error 1 &&
		fails 'cannot be brought up' reload && inject none && reload && is_healthy && within 5 ping4
	local status=$?
	inject none && with_rdma && return $status
}

# The driver is told that the link has changed, and cannot ask how.
link_is_asked_for_again() {
	local status
	within 5 has_carrier 1 && dmesg -C && inject command-error 1 && skuactl link skua0 down && within 5 has_carrier 0 &&
		dmesg | grep 'cannot ask for the state of the link'
	status=$?
	inject none && skuactl link skua0 up && within 5 ping4 && return $status
}

enable_rdma() {
	rdma_is_enabled true && param set value false cmode driverinit && works || return
	start_traffic -q 4 && reload && traffic_ends && no_rdma && rdma_is_enabled false && within 5 ping4 &&
		echo 1 >"/sys/bus/pci/devices/$device/reset" && no_rdma && within 5 ping4
	local status=$?
	param set value true cmode driverinit && no_rdma && with_rdma && return $status
}
bad_params() {
	fails . param set value 7 cmode driverinit && fails . param set value false cmode runtime &&
		fails . param set value false cmode permanent &&
		fails . devlink dev param set "$handle" name enable_roce value false cmode driverinit &&
		rdma_is_enabled true
}
bad_health() {
	fails . devlink health show "$handle" reporter fw && fails . devlink health test "$handle" reporter fatal &&
		fails . devlink health show pci/0000:ff:1f.7 reporter fatal && is_healthy
}

# A machine that is shut down leaves a device that reaches no memory, whatever a program still asks for.
is_bus_master() { [ $((0x$(od -An -tx1 -j4 -N1 "/sys/bus/pci/devices/$device/config" | tr -d ' ') & 4)) != 0 ]; }
stays_shut_down() {
	local status
	stays_dead && is_bus_master && modprobe skua_selftest && echo 1 >/sys/kernel/debug/skua_selftest/shutdown &&
		! is_bus_master && echo 1 >"/sys/bus/pci/devices/$device/reset" && ! is_bus_master &&
		fails 'cannot be brought up' recover && ! is_bus_master && fails 'cannot be brought up' reload &&
		! is_bus_master && diagnosis 'x["state"] == "dead"'
	status=$?
	rmmod skua_selftest
	rebind && works_in 10 && return $status
}

# Resets, reloads, deaths and recoveries meet.
all_at_once() {
	local jobs=() end=$((SECONDS + 6 * slowness))
	devlink health set "$handle" reporter fatal auto_recover true grace_period 0 || return
	while [ $SECONDS -lt $end ]; do reload; done &
	jobs+=($!)
	while [ $SECONDS -lt $end ]; do echo 1 >"/sys/bus/pci/devices/$device/reset"; done &
	jobs+=($!)
	while [ $SECONDS -lt $end ]; do inject fatal; recover; sleep 0.3; done &
	jobs+=($!)
	while [ $SECONDS -lt $end ]; do
		clear
		devlink health dump show "$handle" reporter fatal
		devlink health diagnose "$handle" reporter fatal
		devlink dev info "$handle"
		left ethtool -i skua0
	done >/dev/null &
	jobs+=($!)
	while [ $SECONDS -lt $end ]; do left timeout 20 rdma_traffic -Q -t 1 -q 2 skua_0 skua_1 >/dev/null; done &
	jobs+=($!)
	wait "${jobs[@]}"
	inject none && rebind && works_in 10
}

is_gone() { ! devlink dev show "$handle"; }
goes_with_the_driver() {
	devlink dev show "$handle" && echo "$device" >$driver/unbind && is_gone
	local status=$?
	echo "$device" >$driver/bind && dress && within 5 there && works_in 5 && devlink dev show "$handle" && return $status
}

t 'traffic' works
t 'info' info
t 'a device that is healthy' a_healthy_device
t 'a dump of a device that lives' dump_of_a_device_that_lives
t 'dumps are kept until they are cleared' dumps_are_kept
t 'a device that is fatal' death fatal 'it reported a fatal error' \
	'x["health_at_death"] == "0x7" and x["cause_at_death"] == "fault asked for by a test"'
t 'frames of a device that is dead are given back' frames_are_given_back
t 'settings of a device that is dead are refused' settings_are_refused
t 'a command is not answered' death command-timeout 'a command was not answered in time' 'x["status_at_death"] == "0x3"'
t 'a recovery fails, and the next does not' recovery_fails
t 'a reset heals' reset_heals
t 'a reload heals' reload_heals
t 'a device recovers by itself, but not at once again' recovers_by_itself
t 'a device recovers by itself each time' recovers_each_time
t 'the driver is unbound while it recovers the device' unbound_while_it_recovers
t 'reload under traffic' reload_under_traffic
t 'a reload tells the peers of connections' peer_is_told
t 'reload while the netdev is down' reload_while_down
t 'reloads that are refused' bad_reloads
t 'a reload fails, and the next does not' reload_fails
t 'a device stays dead when the machine is shut down' stays_shut_down
t 'the state of the link is asked for again' link_is_asked_for_again
t 'RDMA is switched off and on' enable_rdma
t 'parameters that are refused' bad_params
t 'nonsense about health is refused' bad_health
t 'all at once' all_at_once
t 'devlink follows the driver' goes_with_the_driver
end
