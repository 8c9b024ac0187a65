#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# make check: the stages below, each with its time; then one line that sums up the tests of
# all. A stage whose program ends its output with "N passed, N failed, N skipped" counts with
# these numbers, any other as one test. Output is kept under build/check/.
set -u
cd "$(dirname "$0")/.."
logs=build/check
mkdir -p "$logs"
passed=0 failed=0 skipped=0

# stage NAME BUDGET-SECONDS COMMAND...
stage() {
	name=$1 budget=$2
	shift 2
	start=$(date +%s)
	timeout "$budget" "$@" >"$logs/$name.log" 2>&1
	status=$?
	seconds=$(($(date +%s) - start))
	sum=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' \
		"$logs/$name.log" | tail -n 1)
	[ -n "$sum" ] || { [ $status -eq 0 ] && sum="1 0 0" || sum="0 1 0"; }
	# shellcheck disable=SC2086
	set -- $sum
	# A stage that fails without a failed test died on the way.
	[ $status -eq 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
	echo "$name: $1 passed, $2 failed, $3 skipped in $seconds s (budget $budget s)"
	[ "$2" -eq 0 ] || { echo "--- the end of $logs/$name.log:"; tail -n 60 "$logs/$name.log"; }
}

stage manual 60 python3 Documentation/check-manual
stage manual-checker 300 python3 Documentation/check-manual --self-test
stage skuad 900 make -s --no-print-directory -C tools/skuad check
stage skuad-tsan 900 make -s --no-print-directory -C tools/skuad check-tsan
stage provider 300 make -s --no-print-directory -C tools/provider/test check \
	OUT="$PWD/build/provider-test"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
