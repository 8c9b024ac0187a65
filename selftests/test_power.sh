#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The machine sleeps, as far as that can be tried: all devices are suspended and resumed, but the
# machine stays on. Programs see their device die; afterwards the NICs work as before. A 9p share does
# not survive it: whoever runs this, runs it from a copy.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

# A device without interrupts would keep it for ever.
works_at_once() { left timeout 20 rdma_traffic -Q -n 60 -s 0-20000 skua_0 skua_1; }
ping4() { left ping -q -c 2 -i 0.2 -W 1 192.0.2.2; }
# What is to stay: name, namespace, addresses, MTU.
dressed() {
	left ip -o address show skua0 | grep -o 'inet.*scope' &&
		left ip -o link show skua0 | grep -o 'mtu [0-9]*'
}

# sleeps STATE: freeze, mem, or disk, which is hibernation.
sleeps() {
	local before status
	before=$(dressed)
	echo devices >/sys/power/pm_test
	echo "$1" >/sys/power/state
	status=$?
	echo none >/sys/power/pm_test
	[ $status = 0 ] && within 20 there && [ "$(dressed)" = "$before" ] && within 10 ping4 &&
		works_in 10 works_at_once
}
sleeps_under_traffic() {
	start_traffic -q 4 && sleeps "$1" && traffic_ends
}

echo 1 >/sys/module/suspend/parameters/pm_test_delay
left ip link set skua0 mtu 4000
right ip link set skua1 mtu 4000
for state in freeze mem disk; do
	t "sleep: $state" sleeps $state
	t "sleep under traffic: $state" sleeps_under_traffic $state
done
left ip link set skua0 mtu 1500
right ip link set skua1 mtu 1500
end
