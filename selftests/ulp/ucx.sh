#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# UCX between two guests: the tests of ucx_perftest, which compares nothing.

. "$(dirname "$0")/peer.sh"

# perf TRANSPORTS OPTIONS CLIENTS-OPTIONS. -P 0: without MPI, which it takes where it has no terminal.
perf() {
	local words="env UCX_TLS=$1 ucx_perftest -P 0 $2"
	meet 13337 "$words" "$words $address $3 -n 200 -w 10"
}

for test in put_lat put_bw add_lat add_mr fadd cswap; do
	t "rc_verbs, $test" perf rc_verbs '-d skua_0:1' "-x rc_verbs -t $test"
done
end
