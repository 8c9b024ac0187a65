#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs one test program, shows what it says, and leaves its name and how many tests passed, failed
# and were skipped in a file. A cmocka program counts by its tests. One that dies, or fails without
# naming a test, counts as one failure. One without cmocka counts as one test: it ends with the line
# "N passed, N failed, N skipped", or with status 77, which means skipped. A program that tested
# nothing has failed. It gets SKUA_TEST_TIMEOUT seconds.
#
# usage: run-test.sh PROGRAM RESULT

name=${1##*/}
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

# cmocka names a failed or skipped test twice.
count() { grep -axE "\[ *$1 *\] ([A-Z0-9 -]+: )?[A-Za-z0-9_]+" "$out" | sort -u | wc -l; }

echo "$name begins"
began=$(date +%s)
timeout -k 5 "${SKUA_TEST_TIMEOUT:-600}" "$1" >"$out" 2>&1
rc=$?
# Others may run, so it is shown as a whole.
echo "== $name, $(($(date +%s) - began)) s"
cat "$out"
[ $rc = 124 ] && echo "$name: no end in ${SKUA_TEST_TIMEOUT:-600} s"
ok=$(count OK) no=$(count FAILED) skip=$(count SKIPPED)
if [ $rc != 0 ] && [ $rc != 77 ] && [ "$no" = 0 ]; then
	no=1
fi
if [ "$ok$no$skip" = 000 ]; then
	if [ $rc = 77 ]; then
		skip=1
	elif grep -aqxE '[1-9][0-9]* passed, 0 failed, [0-9]+ skipped' "$out"; then
		ok=1
	else
		echo "$name tested nothing"
		no=1
	fi
fi
echo "$name $ok $no $skip" >"$2"
