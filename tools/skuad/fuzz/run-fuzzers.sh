#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# run-fuzzers.sh SECONDS JOBS CORPUS FOUND FUZZER...
#
# Runs each fuzzer for SECONDS, JOBS of them at once. Each begins with its seeds and with what it
# kept in CORPUS/NAME earlier. The input that made one fail, and what was said then, is left in
# FOUND/NAME: "FUZZER INPUT" plays it again.

seconds=$1 jobs=$2 corpus=$3 found=$4
shift 4

if [ "$jobs" = - ]; then	# one of those that are started below
	name=${1##*/}
	seeds=$corpus/$name.seeds log=$found/$name/log
	rm -rf "$seeds" "${found:?}/$name"
	mkdir -p "$seeds" "$corpus/$name" "$found/$name"
	if "$1" --seeds="$seeds" >"$log" 2>&1 &&
	   "$1" -max_total_time="$seconds" -max_len=3072 -len_control=0 -timeout=20 \
		-rss_limit_mb=3000 -print_final_stats=1 \
		-artifact_prefix="$found/$name/" "$corpus/$name" "$seeds" >>"$log" 2>&1
	then
		echo "$name: $(sed -n 's/^#[0-9]*\tDONE *//p' "$log")"
		rm -rf "${found:?}/$name"
		exit 0
	fi
	# The stack with names, by gdb: the root has no tool of llvm's for it.
	for input in "$found/$name"/[clot]*-*; do
		[ ! -e "$input" ] || ASAN_OPTIONS=abort_on_error=1:detect_leaks=0 timeout 120 \
			gdb -q -batch -ex run -ex bt --args "$1" "$input" >>"$log" 2>&1
	done
	tail -n 60 "$log"
	echo "$name: FAILED, see $found/$name"
	exit 1
fi

printf '%s\n' "$@" | xargs -P "$jobs" -I {} "$0" "$seconds" - "$corpus" "$found" {}
failed=0
for fuzzer; do
	[ ! -e "$found/${fuzzer##*/}" ] || failed=$((failed + 1))
done
echo "$(($# - failed)) passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
