#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# UCX between two guests. ucx_perftest runs every test over RC and over UD; it compares nothing. io_demo compares what
# it reads and writes (-q), also while the wire is interrupted or lossy.

. "$(dirname "$0")/peer.sh"

options='-n 200 -w 10'
# What each transport has operations for. There is no swap in RDMA.
uct_rc='put_lat
put_bw -D short -s 64
put_bw -D bcopy -s 3000
put_bw -D zcopy -s 100000
get -D bcopy -s 3000
get_bw -D zcopy -s 100000
add_lat
add_mr
fadd
cswap
am_lat
am_bw -D short -s 64
am_bw -D bcopy -s 3000
am_bw -D zcopy -s 3000'
uct_ud='am_lat
am_bw -D short -s 64
am_bw -D bcopy -s 1000
am_bw -D zcopy -s 1000'
# UCP makes what a transport lacks from what it has.
ucp='tag_lat
tag_bw -s 1048576 -n 20
tag_sync_lat
tag_sync_bw
ucp_put_lat
ucp_put_bw -s 65536
ucp_get -s 65536
ucp_add
ucp_fadd
ucp_swap
ucp_cswap
stream_bw -s 65536
stream_lat
ucp_am_lat
ucp_am_bw -D iov -s 100,2000,3'

# perf TRANSPORTS OPTIONS CLIENTS-OPTIONS. RC takes UD, too, to connect. -P 0: without MPI, which it takes where it has
# no terminal.
perf() {
	local words="env UCX_TLS=$1 ucx_perftest -P 0 $2"
	meet 13337 "$words" "$words $address $3"
}
# all TESTS TRANSPORTS OPTIONS: as a batch, which both sides read. Each test's line of results begins with its name.
all() {
	local tests=$1 name
	awk -v options="$options" '{ print $1 "_" NR, "-t", $1, options, substr($0, length($1) + 1) }' <<<"$tests" >/tmp/batch
	shift
	ssh $peer 'cat >/tmp/batch' </tmp/batch && perf "$1" "$2 -b /tmp/batch" -v | tee /tmp/out
	[ "${PIPESTATUS[0]}" = 0 ] || return
	while read -r name _; do
		grep -q "^$name, *[0-9]" /tmp/out || { echo "$name has no result"; return 1; }
	done </tmp/batch
}

# demo TRANSPORTS OPTIONS: reads and writes of all sizes. It would connect anew if a connection were lost: none may be.
demo() {
	local words="env UCX_TLS=$1 io_demo -p 1400 -q -d 1:500000" status
	start "$words" && within 20 ready 1400 &&
		by_rdma 1000000 timeout $((120 * slowness)) bash -c "$words -o read,write $2 $address" >/tmp/out 2>&1
	status=$?
	stop
	tail -n 20 /tmp/out
	echo "status $status"
	! grep -E 'detected error|corruption' /tmp/out && [ $status = 0 ]
}

t 'rc_verbs, put_bw' perf rc_verbs '-d skua_0:1' "-x rc_verbs -t put_bw $options"
t 'rc_verbs, all tests of UCT' all "$uct_rc" rc_verbs '-d skua_0:1 -x rc_verbs'
t 'ud_verbs, all tests of UCT' all "$uct_ud" ud_verbs '-d skua_0:1 -x ud_verbs'
for tls in rc ud; do
	t "$tls, all tests of UCP" all "$ucp" $tls ''
	t "$tls, io_demo" demo $tls '-i 300'
	loss=loss length='-i 1000000 -l 10'
	# io_demo -l ends a connection that has requests. Over UD, UCX may wait for ever then: all that was posted is
	# completed and polled, and it sends nothing more.
	[ $tls = rc ] || loss=datagram_loss length='-i 1500'
	for fault in outage $loss; do
		t "$tls, io_demo, $fault" during $fault demo $tls "$length"
	done
	t "$tls, io_demo, afterwards" demo $tls '-i 100'
done
t 'nothing is left' nothing_is_left
end
