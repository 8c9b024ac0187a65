# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Counters of the NICs. skuactl reaches all NICs from each guest.

# counted NAME: what all NICs together have counted under this name.
counted() { skuactl --json counters | awk -v name="\"$1\":" '$1 == name { sum += $2 } END { printf "%d\n", sum }'; }

# has_counted NAME BEFORE NUMBER: at least so many more than before.
has_counted() { [ $(($(counted "$1") - $2)) -ge "$3" ]; }
