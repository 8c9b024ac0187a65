#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Verified RC traffic between both NICs, on the real clock, while skuad drops, delays or changes their
# frames. Each case is one impairment, or a mix, with one way of recovery: selective repeat or go-back-N.
# A case is several runs of rdma_traffic with all opcodes; each run has its own seed and number of QPs.
# A case fails if an operation fails, if data differ, or if nothing completes for SKUA_LOSS_PATIENCE
# seconds (15). The state of the QPs at that moment, twice, is part of the output. Nothing is retried.
#
# SKUA_LOSS_SECONDS is the time for each impairment (8); half of it goes to each way of recovery. A mix
# gets twice as long. SKUA_LOSS_SEED is the first seed (1). SKUA_LOSS_CASES is a pattern of grep -E:
# only these impairments.

. "$(dirname "$0")/tap.sh"

seconds=${SKUA_LOSS_SECONDS:-8}
patience=${SKUA_LOSS_PATIENCE:-15}
seed=${SKUA_LOSS_SEED:-1}
cases=${SKUA_LOSS_CASES:-}

# Impairments and their rules, on skua0 and thus on both directions of the wire. The 10 ms queue of a
# `rate` with dir=in drops what comes in a burst.
alone='drop            drop=2%
reorder         reorder=5%,by=1ms
duplicate       duplicate=5%
corrupt         corrupt=1%
jitter          delay=1ms,jitter=500us
rate            rate=1G
ecn             ecn=100%,over=100us,dir=in rate=1G,dir=in
outages         drop=0%'
mixed='mix-lossy       drop=1% reorder=2%,by=500us duplicate=1% corrupt=0.5% delay=200us,jitter=100us
mix-congested   drop=1% delay=1ms,jitter=500us ecn=100%,over=100us,dir=in rate=500M,dir=in'

# number of QPs, sizes: the rounds of a case take these by turns.
shapes=('4 0-1048577' '64 0-70000' '1 0-1048577' '16 0-300000')

# Rows of QPs that wait for something, or whose peer does, and all counters that are not 0.
state='for i in 1 2; do
	skuactl qps | awk '\''NR == 1 { print } $3 == "RC" { row[$2] = $0; peer[$2] = $5; waits[$2] = $11 > 0 }
		END { for (q in row) if (waits[q] || waits[peer[q]]) print row[q] }'\''
	for nic in skua0 skua1; do
		echo "$nic: $(skuactl --json counters $nic | grep -E "(timeouts|retransmits|duplicates|order|nak|cnp|bad)[a-z_]*\": [1-9]" | tr -d " \n")"
	done
	skuactl impair skua0
	sleep 1
done >&2'

# of NAME: a counter, both NICs together.
of() { skuactl --json counters | awk -v name="\"$1\":" '$1 == name { sum += $2 } END { print sum + 0 }'; }

recover_by() {
	local nic
	for nic in skua0 skua1; do
		skuactl inject "$nic" none || return
		[ "$1" = selective ] || skuactl inject "$nic" go-back-n || return
	done
}

# Everything is lost for some milliseconds, again and again: loss in bursts. Ends with its file.
outages() {
	while [ -e /tmp/outages ]; do
		skuactl impair skua0 drop=100% && sleep 0.005
		skuactl impair skua0 drop=0% && sleep 0.2
	done >/dev/null
}

# How many frames the rules did something to.
impaired() { skuactl impair skua0 | awk 'NR > 1 { sum += $NF } END { print sum + 0 }'; }

# traffic SECONDS ROUND
traffic() {
	local qps sizes
	read -r qps sizes <<<"${shapes[$2 % ${#shapes[@]}]}"
	echo "QPs: $qps, seed: $seed"
	left timeout $(($1 + 120)) rdma_traffic -Q -t "$1" -p "$patience" -q "$qps" -s "$sizes" -r "$seed" \
		-x "$state" skua_0 skua_1
}

# suffers SECONDS NAME RULE...: runs of 2 to 15 s.
suffers() {
	local total=$1 name=$2 run round=0 status=0 toggles='' before
	shift 2
	run=$((total / 4 < 2 ? 2 : total / 4 > 15 ? 15 : total / 4))
	skuactl impair skua0 "$@" "seed=$seed" || return
	if [ "$name" = outages ]; then
		touch /tmp/outages
		outages &
		toggles=$!
	fi
	before=$(of retransmits)
	while [ $((round * run)) -lt "$total" ] && [ $status = 0 ]; do
		traffic "$run" "$round"
		status=$?
		seed=$((seed + 1)) round=$((round + 1))
	done
	if [ -n "$toggles" ]; then
		rm /tmp/outages
		wait "$toggles"
		[ "$(of retransmits)" != "$before" ] || { echo 'nothing was retransmitted'; status=1; }
	elif [ $# -gt 0 ] && [ "$(impaired)" = 0 ]; then
		echo 'the rules met no frame'
		status=1
	fi
	skuactl impair skua0 none >/dev/null
	return $status
}

# With NAKs for lost packets, or without: else the other way of recovery was tested. Until both NICs have agreed on
# selective repeat, they send a few NAKs.
recovers_by() {
	local way=$1 naks sent
	shift
	naks=$(of seq_nak_sent) sent=$(of retransmits)
	suffers "$@" || return
	naks=$(($(of seq_nak_sent) - naks)) sent=$(($(of retransmits) - sent))
	echo "$naks NAKs, $sent retransmitted"
	case $way in
	selective) [ $((20 * naks)) -le $sent ] ;;
	go-back-n) [ "$2" != drop ] || [ $naks -gt 0 ] ;;
	esac
}

# SECONDS <LIST: every line of it in both ways.
all() {
	local way name rules list
	list=$(grep -E "^($cases)" || :)
	[ -n "$list" ] || return
	for way in selective go-back-n; do
		recover_by $way || exit 1
		while read -r name rules; do
			# shellcheck disable=SC2086
			t "$name ($rules), $way" recovers_by $way "$1" "$name" $rules </dev/null
			seed=$((seed + 100))
		done <<<"$list"
	done
}

t 'no impairment' suffers 4 none
all $((seconds / 2)) <<<"$alone"
all "$seconds" <<<"$mixed"
recover_by selective
skuactl impair skua0 none >/dev/null
end
