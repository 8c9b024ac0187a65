#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# librpma between two guests, by rpma.c, which compares: flushes to global visibility and atomic writes by the NIC's own
# operations, then while the wire is interrupted or lossy.

. "$(dirname "$0")/peer.sh"

persist() { meet 7204 "$here/rpma serve $address 7204" "$here/rpma use $address 7204 ${1:-}"; }
# of COUNTER: of this guest's NIC.
of() { skuactl --json counters node1 | awk -v name="\"$1\":" '$1 == name { print $2 + 0 }'; }
grew() {
	local before
	before=$(of "$1")
	persist && [ "$(of "$1")" -gt "$before" ]
}

t 'write, flush, atomic write, read' persist
t 'FLUSH is used' grew rdma_tx_flush
t 'ATOMIC WRITE is used' grew rdma_tx_atomic_write
for fault in outage loss; do
	t $fault during $fault persist 8
done
t 'afterwards' persist
t 'nothing is left' nothing_is_left
end
