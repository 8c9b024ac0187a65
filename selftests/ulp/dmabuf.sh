#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Memory of another driver between two guests, by dmabuf.c, which compares: dma-bufs of skua_exporter.ko at both ends,
# then while the wire is interrupted or lossy.

. "$(dirname "$0")/peer.sh"

move() { meet 7205 "$here/dmabuf serve $address 7205" "$here/dmabuf use $address 7205 ${1:-}"; }
# A buffer that is left keeps its module.
no_buffers() { rmmod skua_exporter && ssh -n $peer rmmod skua_exporter; }

t 'WRITE and READ' by_rdma $((2 << 20)) move
for fault in outage loss; do
	t $fault during $fault move 8
done
t 'afterwards' move
t 'no buffer is left' no_buffers
t 'nothing is left' nothing_is_left
end
