#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Verified traffic beside an unprivileged program that misuses the NICs (hostile.c): it rings doorbells that
# nobody asked for, or writes over its own rings and records. No operation of the traffic may fail. Its rate must
# be at least SKUA_HOSTILE_SHARE percent (80) of its rate beside the same program with its stores going to ordinary
# memory: the processor time that the program takes from rdma_traffic in the guest is not harm done by way of the NIC.
#
# The programs take turns, and the median of the shares of SKUA_HOSTILE_ROUNDS (5) rounds counts, since other work
# of the host takes processors away at times. Each run takes SKUA_HOSTILE_SECONDS (2).

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

seconds=${SKUA_HOSTILE_SECONDS:-2}
rounds=${SKUA_HOSTILE_ROUNDS:-5}
share=${SKUA_HOSTILE_SHARE:-80}

bad_doorbells() { skuactl --json counters | awk '$1 == "\"bad_doorbells\":" { sum += $2 } END { print sum + 0 }'; }

# Verified traffic for so long; operations a second in $rate.
measure() {
	left timeout $((seconds + 60)) rdma_traffic -Q -t "$seconds" -q 4 -s 0-70000 skua_0 skua_1 >/tmp/traffic || return
	rate=$(awk '/all verified/ { printf "%d", $1 / $(NF - 3) }' /tmp/traffic)
}
# Doorbells that QEMU has trapped and not sent yet would slow down the next run. All of a program that has ended are
# bad, since its QPs are gone.
stands_still() { local before; before=$(bad_doorbells); sleep 0.5; [ "$(bad_doorbells)" -eq "$before" ]; }
drain() { within 60 stands_still; }
# beside WORDS...: traffic beside the program, which must end well afterwards.
beside() {
	local status
	left ./hostile "$@" >/tmp/hostile &
	hostile=$!
	sleep 0.3
	measure
	status=$?
	kill $hostile && wait $hostile && cat /tmp/hostile && drain && return $status
}
median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# compare KIND: fails if traffic does. The median share is in /tmp/share then.
compare() {
	local i reference shares=()
	rm -f /tmp/share
	for ((i = 0; i < rounds; i++)); do
		beside "$1" harmless || return
		reference=$rate
		beside "$1" || return
		shares+=($((100 * rate / reference)))
		tell "$1: $rate operations/s, $reference beside the harmless program: ${shares[i]}%"
	done
	median "${shares[@]}" >/tmp/share
}
no_qp_is_left() {
	local qps
	qps=$(skuactl qps) && ! grep -E ' (RC|UD) ' <<<"$qps"
}
is_enough() { [ "$(cat /tmp/share)" -ge "$share" ]; }

# As many as it takes, and the device counts all of them.
two_million() {
	local before after claimed=0 n
	before=$(bad_doorbells)
	while [ "$claimed" -lt 2000000 ]; do
		beside doorbells || return
		read -r _ _ n _ </tmp/hostile
		claimed=$((claimed + n))
	done
	after=$(bad_doorbells)
	tell "$claimed bad doorbells, $((after - before)) counted"
	[ $((after - before)) -ge $claimed ]
}

t 'traffic' works
t 'traffic beside two million bad doorbells' two_million
t 'traffic beside misused doorbells, and beside none' compare doorbells
t "of the latter it keeps $share%" is_enough
t 'traffic beside misused rings, and beside none' compare rings
t "of the latter it keeps $share%" is_enough
t 'traffic afterwards' works
t 'no QP is left' within 5 no_qp_is_left
end
