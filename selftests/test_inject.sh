#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The device fails, as skuactl asks it to, and the drivers notice: programs end with an error
# instead of hanging, the kernel's log says why, and afterwards the NIC can be used again. Leaves
# the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

inject() { skuactl inject skua0 "$@"; }
state_is() { skuactl devices | grep -q "^skua0 .* $1 "; }

begin_traffic() { start_traffic -q 4; }
only() { [ "$(skuactl qps skua0 | grep -c ' RC ')" = 0 ]; }

# The kernel's log says, from `listen` on, that the device died, and of what.
listen() { lines=$(dmesg | wc -l); }
said() { dmesg | tail -n "+$((lines + 1))" | grep -q "device is dead: $1"; }
is_alive() { ! said ''; }
died_of() {
	within 15 said "$1" && return
	dmesg | tail -n "+$((lines + 1))"
	return 1
}
# A dead device ends what runs on it, refuses what is new, and works again after a reset.
revives() {
	echo 1 >"/sys/bus/pci/devices/$device/reset" && within 10 there && works_in 10
}
# rdma_traffic says that it was refused; it does not run into the timeout.
refuses() {
	left timeout $((20 * slowness)) rdma_traffic -Q -n 1 skua_0 skua_1
	local status=$?
	[ $status = 1 ] || [ $status = 2 ]
}

bound() { echo "$device" >$driver/bind && within 5 there && dress && works_in 5; }
unbound() { echo "$device" >$driver/unbind && [ ! -e "$driver/$device" ]; }

stray_events() {
	listen
	inject stray-events && works && is_alive
}
eq_overflow() {
	listen
	inject eq-overflow && works_in 5 && is_alive &&
		within 5 left grep -q up /sys/class/net/skua0/operstate
}
port_is() { grep -q "$1" /sys/class/infiniband/skua_0/ports/1/state; }
port_down() {
	skuactl link skua0 down && within 5 port_is DOWN && left grep -q 0 /sys/class/net/skua0/carrier
	local status=$?
	skuactl link skua0 up && within 5 port_is ACTIVE && works_in 5 && [ $status = 0 ]
}
qp_error() {
	listen
	begin_traffic && inject "$1" "$qpn" && traffic_ends && works && is_alive && within 5 only
}
cq_error() {
	listen
	begin_traffic && inject cq-error "$cqn" && traffic_ends && works && is_alive && within 5 only
}
# Any command will do.
command_is_lost() {
	listen
	inject command-timeout && refuses && died_of 'a command was not answered in time' && revives
}
command_is_lost_under_traffic() {
	listen
	begin_traffic && inject command-timeout && left timeout $((20 * slowness)) ethtool -S skua0 >/dev/null
	traffic_ends && died_of 'a command was not answered in time' && refuses && revives
}
# So is the first one after the reset, which therefore fails; the next does not.
command_is_lost_after_reset() {
	listen
	inject command-timeout 2 && refuses && died_of 'a command was not answered in time' || return
	echo 1 >"/sys/bus/pci/devices/$device/reset"
	dmesg | tail -n "+$((lines + 1))" | grep -q 'cannot be used after its reset' && revives
}
is_master() { ((16#$(setpci -s "$device" COMMAND) & 4)); }
# RST-4 RST-6: what makes it let go of memory is a reset.
fatal() {
	listen
	begin_traffic && inject fatal && traffic_ends &&
		died_of 'it reported a fatal error (status 0x[0-9a-f]*, health: .*)' &&
		within 5 state_is ready && refuses && revives
}
# RST-6: one that cannot say so has it in STATUS.
silently_fatal() {
	listen
	setpci -s "$device" COMMAND=0:4 && inject fatal && died_of 'it is in the fatal state' && refuses && revives
}
# REG-4 RST-6: its registers are all ones. It is not asked to reset for long, while programs wait, and cut off instead.
gone() {
	listen
	begin_traffic && inject gone && state_is gone && traffic_ends && died_of 'it is gone from the bus' && refuses &&
		! is_master && revives && state_is enabled &&
		! dmesg | tail -n "+$((lines + 1))" | grep 'reset does not end'
}
# REG-4: nor is what its clock reads a time, although the driver has not looked yet.
clock_is_gone() {
	listen
	left python3 - <<-'END' && died_of 'it is gone from the bus' && revives
		import errno, subprocess, sys
		from pyverbs.device import Context
		from pyverbs.pyverbs_error import PyverbsRDMAError
		context = Context(name='skua_0')
		context.query_rt_values_ex()
		subprocess.run(['skuactl', 'inject', 'skua0', 'gone'], check=True)
		try:
		    sys.exit('the time is %d, %d' % context.query_rt_values_ex())
		except PyverbsRDMAError as error:
		    sys.exit(error.error_code != errno.EIO and error)
	END
}
# The RDMA driver does not take a device that is dead, though RoCE was on when it died.
is_not_taken() {
	local part taker status
	part=$(basename "/sys/bus/pci/devices/$device/skua".*)
	taker=$(readlink -f "/sys/bus/auxiliary/devices/$part/driver")
	listen
	inject fatal && died_of 'it reported a fatal error' && echo "$part" >"$taker/unbind" &&
		! echo "$part" >"$taker/bind" && [ ! -e "/sys/bus/pci/devices/$device/infiniband" ]
	status=$?
	echo 1 >"/sys/bus/pci/devices/$device/reset"
	[ -e "/sys/bus/pci/devices/$device/infiniband" ] || echo "$part" >"$taker/bind"
	within 10 there && works_in 10 && return $status
}
# RST-6: reads without an answer in time say nothing, but three in a row do. The driver looks every two seconds, and
# after such a read in one.
late() { listen; inject read-timeout 2 && sleep 6 && is_alive && works; }
too_late() { listen; inject read-timeout 3 && died_of 'it is gone from the bus' && refuses && revives; }
dead_and_unbound() {
	begin_traffic && inject "$1" && unbound && traffic_ends && inject none && bound
}
# A link event asks for the state of the link, and is held up (kernel/carrier.c) before it sets the carrier. Meanwhile
# the NIC dies. The carrier has to go after the event has set it, or a dead NIC would have one.
carrier=/sys/kernel/debug/skua_selftest/carrier
dead_without_carrier() {
	listen
	modprobe skua_selftest && within 5 has_carrier 1 && skuactl link skua0 down && within 5 has_carrier 0 &&
		echo 1 >$carrier && skuactl link skua0 up && within 10 grep held $carrier && inject fatal &&
		died_of 'it is in the fatal state' && sleep 1 && grep held $carrier
	local status=$?
	cat $carrier
	echo 0 >$carrier && within 5 has_carrier 0 || status=1
	skuactl link skua0 up
	rmmod skua_selftest && revives && within 5 has_carrier 1 && return $status
}
# RST-8: a driver that lets go of a device leaves it in reset, and cut off from memory.
is_let_go() { state_is ready && ! is_master && [ ! -e "/sys/bus/pci/devices/$device/net" ]; }
lets_go() {
	unbound && is_let_go
	local status=$?
	bound && is_master && [ $status = 0 ]
}
# INI-2 RST-8: the next driver takes a device as it is: here fatal, because somebody enabled it with nonsense.
takes_what_it_finds() {
	unbound && setpci -s "$device" COMMAND=6:6 && python3 - "$device" <<-'END' && within 5 state_is fatal && bound
		import ctypes, mmap, sys
		with open('/sys/bus/pci/devices/%s/resource0' % sys.argv[1], 'r+b') as file:
		    bar = mmap.mmap(file.fileno(), 4096)
		for register, value in ((0x58, 99), (0x0c, 2)):    # CMD_LOG_SIZE, CONTROL.ENABLE
		    ctypes.c_uint32.from_buffer(bar, register).value = value
	END
}
# INI-6 RST-8: each command of a probe fails in its turn, QUERY_DEVICE first. The driver lets go of the device, or does
# without, and is bound all the same.
each_command_of_probe_fails() {
	local n refused=0 taken=0
	listen
	for n in {1..20}; do
		[ ! -e "$driver/$device" ] || unbound || return
		inject command-error "$n"
		if echo "$device" >$driver/bind; then
			taken=$((taken + 1))
			[ -e "/sys/bus/pci/devices/$device/net" ] || { echo "no netdev with command $n" && return 1; }
			inject none
			continue
		fi
		refused=$((refused + 1))
		is_let_go || { echo "not let go after command $n" && return 1; }
		[ "$n" != 1 ] || dmesg | tail -n "+$((lines + 1))" | grep 'QUERY_DEVICE failed' || return
		inject none
	done
	echo "$refused were refused, $taken taken"
	[ $refused -ge 5 ] && [ $taken -ge 10 ] && is_alive && unbound && bound
}
# A probe that fails leaves nothing behind, and does not hang.
fails_at_probe() {
	local status
	unbound && inject "$@" || return
	timeout $((60 * slowness)) sh -c "echo $device >$driver/bind"
	status=$?
	[ $status != 0 ] && [ $status != 124 ] && [ ! -e "$driver/$device" ] && inject none && bound
}

# PCI-4 GRO-1 INI-6: a device that a driver does not know, or cannot use, is refused, and the log
# says what is wrong with it.
is_refused() {
	listen
	unbound && inject "$1" || return
	! echo "$device" >$driver/bind && [ ! -e "$driver/$device" ] &&
		dmesg | tail -n "+$((lines + 1))" | grep "skua $device: $2"
	local status=$?
	inject none && bound && [ $status = 0 ]
}
# Ethernet works with it all the same.
is_refused_by_rdma() {
	listen
	unbound && inject "$1" && echo "$device" >$driver/bind && [ ! -e /sys/class/infiniband/skua_0 ] &&
		ls "/sys/bus/pci/devices/$device/net" &&
		dmesg | tail -n "+$((lines + 1))" | grep "skua_ib.*: $2"
	local status=$?
	unbound && inject none && bound && [ $status = 0 ]
}
# What of skua0 can be changed while it is up.
settings() {
	left ip -o link show skua0 | grep -o 'mtu [0-9]*' && left ethtool -g skua0 && left ethtool -l skua0 &&
		left ethtool -x skua0 && left ls /sys/class/net/skua0/queues
}
ping4() { left ping -q -c 2 -i 0.2 -W 1 192.0.2.2; }
# Frames of many flows come by the second channel, too.
by_channel_1() { left ethtool -S skua0 | awk '$1 == "rx1_frames:" { print $2 }'; }
are_spread() {
	local before
	before=$(by_channel_1)
	right bash -c 'for port in {5001..5064}; do echo >/dev/udp/192.0.2.1/$port; done' 2>/dev/null
	sleep 0.2
	[ $(($(by_channel_1) - before)) -ge 10 ]
}
# CMD-12: fails_step_by_step UNDO CHANGE...: a change whose first command fails, then whose second does, and so on
# until all have. Either it is made all the same, or all is as before; frames flow after each, as $flow tells.
fails_step_by_step() {
	local n before undo=$1 failed=0 made=0
	shift
	listen
	before=$(settings)
	for n in {1..14}; do
		inject command-error "$n"
		if left "$@"; then
			made=$((made + 1))
			inject none
			left $undo || return
		else
			failed=$((failed + 1))
			inject none
		fi
		diff <(echo "$before") <(settings) || { echo "changed by step $n" && return 1; }
		within 5 "${flow:-ping4}" || { echo "no frames after step $n" && return 1; }
	done
	echo "$failed failed, $made were made"
	[ $failed -gt 0 ] && [ $made -gt 0 ] && works && is_alive
}
mtu_fails() { fails_step_by_step 'ip link set skua0 mtu 1500' ip link set skua0 mtu 1400; }
rings_fail() {
	local flow=are_spread
	left ethtool -L skua0 combined 2
	fails_step_by_step 'ethtool -G skua0 rx 512 tx 2048' ethtool -G skua0 rx 64 tx 128
}
# Other tests leave one channel, or two.
one_channel_fails() {
	left ethtool -L skua0 combined 2
	fails_step_by_step 'ethtool -L skua0 combined 2' ethtool -L skua0 combined 1
}
two_channels_fail() {
	left ethtool -L skua0 combined 1
	fails_step_by_step 'ethtool -L skua0 combined 1' ethtool -L skua0 combined 2 &&
		left ethtool -L skua0 combined 2
}
spreading_fails() { fails_step_by_step 'ethtool -X skua0 default' ethtool -X skua0 weight 1 3; }

# A queue of the network device fails, and so does a command of those that make it anew. The driver tries once more.
gave_up() { dmesg | tail -n "+$((lines + 1))" | grep -q 'skua0: cannot be brought up again'; }
a_queue_fails() {
	local n
	for n in 1 3; do
		listen
		a_qp ETH && inject command-error "$n" && inject qp-fatal "$qpn" && within 10 gave_up || return
		inject none && within 10 ping4 || return
	done
	works && is_alive
}

# GRO-2: of features that are offered, the drivers take those that they know.
is_more_than_known() {
	unbound && inject new-features && bound
	local status=$?
	inject none && [ $status = 0 ]
}

t 'traffic' works
t 'events of nothing are ignored' stray_events
t 'more events than there is room for' eq_overflow
t 'the port goes down and up' port_down
t 'a QP fails' qp_error qp-fatal
t 'a QP has an invalid request' qp_error qp-request-error
t 'a QP has an access violation' qp_error qp-access-error
t 'a CQ fails' cq_error
t 'a command is not answered' command_is_lost
t 'a command is not answered, under traffic' command_is_lost_under_traffic
t 'a command is not answered, and one after the reset' command_is_lost_after_reset
t 'a command fails, and the MTU stays' mtu_fails
t 'a command fails, and rings stay' rings_fail
t 'a command fails, and two channels stay' one_channel_fails
t 'a command fails, and one channel stays' two_channels_fail
t 'a command fails, and the spreading stays' spreading_fails
t 'a queue of frames fails, and so does making it anew' a_queue_fails
t 'the device is fatal, under traffic' fatal
t 'the device is fatal, and cannot report it' silently_fatal
t 'the RDMA driver does not take a dead device' is_not_taken
t 'the device is gone, under traffic' gone
# The debug kernels have no kprobes, which the module needs for it.
[ ! -e /sys/kernel/debug/kprobes ] || t 'a dead device has no carrier' dead_without_carrier
t 'the clock of a device that is gone' clock_is_gone
t 'a device that is fatal is unbound' dead_and_unbound fatal
t 'two reads in a row are not answered' late
t 'three reads in a row are not answered' too_late
t 'a device that is gone is unbound' dead_and_unbound gone
t 'a device that is let go of' lets_go
t 'a device that somebody left fatal' takes_what_it_finds
t 'each command of a probe fails' each_command_of_probe_fails
t 'a device that is gone is not bound' fails_at_probe gone
t 'a device that answers no command is not bound' fails_at_probe command-timeout
t 'a device with another signature is refused' \
	is_refused other-signature 'signature is 0x[0-9a-f]*, not 0x[0-9a-f]*: not a Skua'
t 'a device of another version is refused' \
	is_refused other-version 'interface version is 2\.0, this driver knows 1 only'
t 'a device without objects is refused' is_refused no-limits 'limit num_ports is 0, at least 1 is needed'
t 'a device without MRs is refused by RDMA' is_refused_by_rdma no-mrs 'limit max_mr is 0, at least 1'
t 'a device with features that are not known' is_more_than_known
end
