#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Libraries that programs use instead of verbs: UCX and libfabric, by the programs that come with them.

. "$(dirname "$0")/tap.sh"

# meet PORT SERVER... -- CLIENT...: a server on the right that listens at a TCP port, and its client on the left. Both
# have to end well. Each has a terminal, because ucx_perftest takes MPI where it has none.
meet() {
	local port=$1 server status=0 words=()
	shift
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	right timeout $((100 * slowness)) script -qec "${words[*]}" /dev/null &
	server=$!
	within 20 sh -c "right ss -ltnH | grep -q ':$port '" || return 1
	left timeout $((100 * slowness)) script -qec "$*" /dev/null || status=1
	wait "$server" && [ "$status" = 0 ]
}

# ucx_perftest TRANSPORTS TEST SERVER-OPTIONS CLIENT-OPTIONS
ucx_perftest() {
	meet 13337 "UCX_TLS=$1 UCX_NET_DEVICES=skua_1:1 ucx_perftest $3" -- \
		"UCX_TLS=$1 UCX_NET_DEVICES=skua_0:1 ucx_perftest 192.0.2.2 -t $2 -n 500 -w 20 $4"
}
ucp() { ucx_perftest "$1" "$2" '' ''; }
# By the operations of one transport alone.
uct() { ucx_perftest "$1" "$2" '-d skua_1:1' "-d skua_0:1 -x $1"; }

# libfabric PROVIDERS ENDPOINT: of fi_pingpong, which compares its data (-c).
libfabric() {
	local size
	for size in 1 1000 65536; do
		[ "$2 $size" != 'dgram 65536' ] || continue	# more than the MTU
		meet 47592 "FI_VERBS_GID_IDX=1 fi_pingpong -p '$1' -e $2 -c -I 100 -S $size -d skua_1${3:-}" -- \
			"FI_VERBS_GID_IDX=1 fi_pingpong -p '$1' -e $2 -c -I 100 -S $size -d skua_0${3:-} 192.0.2.2" ||
			return
	done
}

for test in put_lat put_bw add_lat fadd cswap am_lat am_bw; do
	t "UCX, rc_verbs, $test" uct rc_verbs $test
done
for test in am_lat am_bw; do
	t "UCX, ud_verbs, $test" uct ud_verbs $test
done
for test in tag_bw ucp_put_bw ucp_get ucp_fadd ucp_swap ucp_cswap ucp_am_lat stream_bw; do
	t "UCX, rc, $test" ucp rc $test
done
t 'UCX, ud, tag_bw' ucp ud tag_bw
t 'libfabric, connections' libfabric verbs msg
t 'libfabric, reliable datagrams over connections' libfabric 'verbs;ofi_rxm' rdm
t 'libfabric, datagrams' libfabric verbs dgram -dgram
end
