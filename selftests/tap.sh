# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# TAP for tests in shell: `t NAME FUNCTION [ARGUMENTS]` for each, then `end`. A test's output is
# shown if it fails. SKUA_TESTS, a pattern of the shell, chooses tests by name; without it all are run.

. "${BASH_SOURCE%/*}/within.sh"

number=0 failures=0 told=$(mktemp)
echo 'TAP version 13'

t() {
	local name=$1 output
	shift
	# shellcheck disable=SC2053 # it is a pattern
	[[ $name == ${SKUA_TESTS:-*} ]] || return 0
	number=$((number + 1))
	output=$("$@" 2>&1)
	local status=$?
	cat "$told"
	: >"$told"
	if [ $status = 0 ]; then
		echo "ok $number $name"
	else
		failures=$((failures + 1))
		echo "not ok $number $name"
		sed 's/^/# /' <<<"$output"
	fi
}

# What is for people even if the test passes.
tell() { echo "# $*" >>"$told"; }

end() {
	rm -f "$told"
	echo "1..$number"
	exit $((failures > 0))
}
