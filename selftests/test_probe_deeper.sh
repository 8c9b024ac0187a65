#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# As test_probe_failures.sh, but the allocations are those of the functions that the drivers call. They
# are many times as many, so only some of them fail.
#
# Whether memory is lost is not asked: uverbs loses some. It keeps its methods in a radix tree. If
# radix_tree_insert() cannot make a node, the nodes above it that it has made stay in the tree, and
# uverbs frees only nodes that lead to a method. The scans are off, because the kernel log would tell.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/probe.sh"

no_scans() { echo scan=off >/sys/kernel/debug/kmemleak; }

t 'kmemleak does not scan' no_scans
t 'allocations of what they call fail' allocations 32 31 50
t 'the device can be bound again' bind_again
end
