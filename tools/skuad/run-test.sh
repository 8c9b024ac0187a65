#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs test programs one after the other and sums up. A cmocka program counts by its tests;
# one that dies, or fails without naming a test, counts as one failure; one without cmocka
# by its exit status, where 77 means skipped. A program gets SKUA_TEST_TIMEOUT seconds.

passed=0 failed=0 skipped=0 bad=
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

# cmocka names a failed or skipped test twice.
count() { grep -axE "\[ *$1 *\] ([A-Z0-9 -]+: )?[A-Za-z0-9_]+" "$out" | sort -u | wc -l; }

for t; do
	echo "== ${t##*/}"
	timeout -k 5 "${SKUA_TEST_TIMEOUT:-300}" "$t" >"$out" 2>&1
	rc=$?
	cat "$out"
	[ $rc = 124 ] && echo "${t##*/}: no end in ${SKUA_TEST_TIMEOUT:-300} s"
	ok=$(count OK) no=$(count FAILED) skip=$(count SKIPPED)
	if [ $rc != 0 ] && [ $rc != 77 ] && [ "$no" = 0 ]; then
		no=1
	fi
	if [ "$ok$no$skip" = 000 ]; then
		if [ $rc = 77 ]; then skip=1; else ok=1; fi
	fi
	passed=$((passed + ok)) failed=$((failed + no)) skipped=$((skipped + skip))
	[ "$no" = 0 ] || bad="$bad ${t##*/}"
done

[ -z "$bad" ] || echo "failed:$bad"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
