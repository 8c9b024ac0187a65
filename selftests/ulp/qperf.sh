#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# qperf between two guests, with RC and rdma_cm (-cm 1; it addresses UC and UD by LID). It compares what its atomics do
# (ver_*), and nothing else.

. "$(dirname "$0")/peer.sh"

# one SECONDS TEST: its server tells its port before it listens there, and a client that is faster is rejected (qperf
# 0.4.11). Only for that it is run again, and how often is told.
one() {
	local tries=0
	while ! timeout $((120 * slowness)) qperf -t "$1" -cm 1 "$address" "$2" >/tmp/out 2>&1; do
		cat /tmp/out
		grep -q 'Event rejected' /tmp/out && [ $((++tries)) -lt 10 ] || return
	done
	cat /tmp/out
	[ $tries = 0 ] || tell "$2 was rejected $tries times"
	grep -A 1 "^$2:" /tmp/out | grep -q '=' || { echo "$2 has no result"; return 1; }
}
# perf SECONDS TEST...
perf() {
	local seconds=$1 name
	shift
	for name; do
		one "$seconds" "$name" || return
	done
}
serve() { start qperf && within 20 ready 19765; }

t 'a server' serve
t 'messages' by_rdma 100000 perf 1 rc_bw rc_lat rc_bi_bw
t 'READ and WRITE' by_rdma 100000 perf 1 rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw rc_rdma_write_lat \
	rc_rdma_write_poll_lat
t 'atomics' perf 1 rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add
for fault in outage loss; do
	t "READ, $fault" during $fault perf 8 rc_rdma_read_bw
done
t 'afterwards' perf 1 rc_rdma_read_bw
t 'the server ends' stop
t 'nothing is left' nothing_is_left
end
