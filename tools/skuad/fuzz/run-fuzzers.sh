#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# run-fuzzers.sh SECONDS JOBS CHANCE CORPUS FOUND FUZZER...
#
# Runs each fuzzer for SECONDS, JOBS of them at once. Each begins with its seeds and with what it
# kept in CORPUS/NAME earlier. CHANCE is the seed of its random numbers: with the same one, and
# nothing kept, it tries the same inputs; 0 is another each time. The input that made one fail, and what was said then, is left in
# FOUND/NAME: "FUZZER INPUT" plays it again. Which failed and how are the last lines, few enough
# for the end of a log that is all that somebody has.

seconds=$1 jobs=$2 chance=$3 corpus=$4 found=$5
shift 5

if [ "$jobs" = - ]; then	# one of those that are started below
	name=${1##*/}
	seeds=$corpus/$name.seeds log=$found/$name/log
	rm -rf "$seeds" "${found:?}/$name"
	mkdir -p "$seeds" "$corpus/$name" "$found/$name"
	"$1" --seeds="$seeds" >"$log" 2>&1 &&
		"$1" -max_total_time="$seconds" -max_len=3072 -len_control=0 -timeout=20 -seed="$chance" \
			-rss_limit_mb=3000 -print_final_stats=1 \
			-artifact_prefix="$found/$name/" "$corpus/$name" "$seeds" >>"$log" 2>&1
	status=$?
	if [ "$status" = 0 ]; then
		echo "$name: $(sed -n 's/^#[0-9]*\tDONE *//p' "$log")"
		rm -rf "${found:?}/$name"
		exit 0
	fi
	echo "$status" >"$found/$name/status"
	# The stack with names, by gdb: the root has no tool of llvm's for it.
	for input in "$found/$name"/[clot]*-*; do
		[ ! -e "$input" ] || ASAN_OPTIONS=abort_on_error=1:detect_leaks=0 timeout 120 \
			gdb -q -batch -ex run -ex bt --args "$1" "$input" >>"$log" 2>&1
	done
	exit 1
fi

# What a log says of a failure: the complaint, in gdb's stack the functions that are ours, and
# what was said last, which is all if it was killed.
why() {
	echo "$1: FAILED with status $(cat "$1/status"), left $(cd "$1" && echo ./*)"
	grep -m 4 -E 'not so:|ERROR: |runtime error:|SUMMARY: |Assertion|ALARM' "$1/log"
	grep -E '^#[0-9]+ .* \(.*\) at ' "$1/log" | grep -v -E 'sanitizer|fuzzer::|nptl|stdlib/' | head -n 6
	tail -n 3 "$1/log"
}

printf '%s\n' "$@" | xargs -P "$jobs" -I {} "$0" "$seconds" - "$chance" "$corpus" "$found" {}
failed=0
for fuzzer; do
	[ -e "$found/${fuzzer##*/}" ] || continue
	failed=$((failed + 1))
	why "$found/${fuzzer##*/}" | cut -c -160
done
echo "$(($# - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
