#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Allocations that fail, one at a time, while the drivers take a device: they refuse it or do
# without, and take it the next time. Needs a kernel with fault injection (lab run --kernel debug);
# test_leaks.sh says whether anything of theirs is left.
#
# Each allocation that the drivers ask for themselves fails once. Those that the functions they call
# make deeper down are for test_probe_deeper.sh.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/probe.sh"

t 'allocations of the drivers fail' allocations $NEAR 1 40
t 'the device can be bound again' bind_again
end
