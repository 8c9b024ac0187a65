#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# RST-10 RST-12 RST-9 SRQ-12: the device dies while consumers in the kernel use it (kernel/death.c), and programs, too, by
# each way to die and with each way to poll. SKUA_CYCLES says how often (1). Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

cycles=${SKUA_CYCLES:-1}
dir=/sys/kernel/debug/skua_selftest

completions() { sed -n 's/.*completions \([0-9]*\)$/\1/p' $dir/death; }
has_moved() { [ "$(completions)" -gt 1000 ]; }
is_dead() { dmesg | tail -n "+$((lines + 1))" | grep -q 'device is dead'; }
dies() {
	start_traffic -q 2 && echo "$1" >$dir/death && within 20 has_moved || { cat $dir/death; return 1; }
	lines=$(dmesg | wc -l)
	skuactl inject skua0 "$2" || return
	# The command that is lost.
	[ "$2" != command-timeout ] || left timeout $((20 * slowness)) ethtool -S skua0 >/dev/null
	traffic_ends && within 15 is_dead && echo end >$dir/death || return
	cat $dir/death
	grep -q '^all is well' $dir/death
	local status=$?
	echo 1 >"/sys/bus/pci/devices/$device/reset" && within 10 there && works_in 10 && [ $status = 0 ]
}
many() {
	for ((i = 0; i < cycles; i++)); do
		dies "$@" || { echo "cycle $i of $cycles"; return 1; }
	done
}

# RST-11 CQE-4: stray FAULT TYPE: a completion of no QP in the CQ of a QP of the kernel's, or one of a receive that the
# QP does not have.
stray() {
	local number
	echo workqueue >$dir/hold && within 10 a_qp "$2" || return
	[ "$1" = stray-receive ] && number=$qpn || number=$cqn
	lines=$(dmesg | wc -l)
	skuactl inject skua0 "$1" "$number" && within 15 is_dead &&
		dmesg | tail -n "+$((lines + 1))" | grep 'device is dead: it completed work that is not outstanding'
	local status=$?
	echo end >$dir/hold
	echo 1 >"/sys/bus/pci/devices/$device/reset" && within 10 there && works_in 10 && [ $status = 0 ]
}

# A dead NIC, whose consumers in the kernel are still there, takes no processor's time.
idle_share() {
	local first second
	read -r -a first </proc/stat
	sleep 2
	read -r -a second </proc/stat
	awk -v a="${first[*]:1}" -v b="${second[*]:1}" 'BEGIN {
		n = split(a, before); split(b, after)
		for (i = 1; i <= n; i++) all += after[i] - before[i]
		printf "%d\n", 100 * (after[4] + after[5] - before[4] - before[5]) / all
	}'
}
idles() {
	local share
	lines=$(dmesg | wc -l)
	skuactl inject skua0 fatal && within 15 is_dead && sleep 1 && share=$(idle_share)
	tell "idle for $share% of the time"
	echo 1 >"/sys/bus/pci/devices/$device/reset" && within 10 there && works_in 10 && [ "$share" -ge 50 ]
}

t 'load' modprobe skua_selftest
for fault in command-timeout fatal gone; do
	for poll in direct softirq workqueue; do
		t "$fault, $poll" many $poll $fault
	done
done
t 'nothing goes on in a dead NIC' idles
t 'a completion of nothing' stray stray-completion RC
t 'a completion of no receive' stray stray-receive RC
t 'a completion of no frame' stray stray-completion ETH
t 'unload' rmmod skua_selftest
end
