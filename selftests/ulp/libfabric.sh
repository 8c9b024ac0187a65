#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# libfabric's verbs provider between two guests, by fi_pingpong, which compares its data (-c): connections, reliable
# datagrams over connections, datagrams; then while the wire is interrupted or lossy.

. "$(dirname "$0")/peer.sh"

# pingpong PROVIDERS ENDPOINT DOMAIN SIZE TIMES
pingpong() {
	local words="env FI_VERBS_GID_IDX=1 fi_pingpong -p '$1' -e $2 -d $3 -c -S $4 -I $5"
	meet 47592 "$words" "$words $address"
}

for size in 1 64 1000 4096 65536 1048576; do
	t "connections, $size bytes" pingpong verbs msg skua_0 $size 50
	t "reliable datagrams over connections, $size bytes" pingpong 'verbs;ofi_rxm' rdm skua_0 $size 50
done
for size in 1 1000; do
	t "datagrams, $size bytes" pingpong verbs dgram skua_0-dgram $size 50
done
for fault in outage loss; do
	t "connections, $fault" during $fault pingpong verbs msg skua_0 65536 1500
	t "reliable datagrams over connections, $fault" during $fault pingpong 'verbs;ofi_rxm' rdm skua_0 65536 1500
done
t 'connections, afterwards' pingpong verbs msg skua_0 65536 100
t 'nothing is left' nothing_is_left
end
