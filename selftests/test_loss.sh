#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Verified RC traffic between both NICs of a pair, on the real clock, while skuad drops, delays or changes their
# frames. Each case is one impairment, or a mix, with one way of recovery: selective repeat or go-back-N.
# A case is several runs of rdma_traffic with all opcodes; each run has its own seed and number of QPs.
# A case fails if an operation fails, if data differ, or if nothing completes for SKUA_LOSS_PATIENCE
# seconds (15). The state of the QPs at that moment, twice, is part of the output. Nothing is retried.
#
# skua_0 and skua_1 are a pair, skua_2 and skua_3 the next, and so on. All pairs work at the same time, and share
# the impairments: with five pairs, a minute of each of ten impairments takes two minutes.
#
# SKUA_LOSS_SECONDS is the time for each impairment (8); half of it goes to each way of recovery.
# SKUA_LOSS_SEED is the first seed (1). SKUA_LOSS_CASES is a pattern of grep -E: only these impairments.

. "$(dirname "$0")/tap.sh"

seconds=${SKUA_LOSS_SECONDS:-8}
patience=${SKUA_LOSS_PATIENCE:-15}
first_seed=${SKUA_LOSS_SEED:-1}
chosen=${SKUA_LOSS_CASES:-}

# Impairments and their rules, on the first NIC of a pair and thus on both directions of its wire. The 10 ms queue of
# a `rate` with dir=in drops what comes in a burst.
impairments='drop            drop=2%
reorder         reorder=5%,by=1ms
duplicate       duplicate=5%
corrupt         corrupt=1%
jitter          delay=1ms,jitter=500us
rate            rate=1G
ecn             ecn=100%,over=100us,dir=in rate=1G,dir=in
outages         drop=0.02%,for=5ms
mix-lossy       drop=1% reorder=2%,by=500us duplicate=1% corrupt=0.5% delay=200us,jitter=100us
mix-congested   drop=1% delay=1ms,jitter=500us ecn=100%,over=100us,dir=in rate=500M,dir=in'

# number of QPs, sizes: the rounds of a case take these by turns.
shapes=('4 0-1048577' '64 0-70000' '1 0-1048577' '16 0-300000')

out=$(mktemp -d /tmp/loss-XXXXXX)
trap 'rm -rf "$out"' EXIT

# Of the pair that works in this shell: its NICs, its RDMA devices, its seed. The seed counts up, from a number of
# the pair's own.
pair() {
	nics=("skua$((2 * $1))" "skua$((2 * $1 + 1))")
	devices=("skua_$((2 * $1))" "skua_$((2 * $1 + 1))")
	seed=$((first_seed + 1000 * $1))
}

# Rows of QPs that wait for something, or whose peer does, and all counters that are not 0.
state() {
	local nic
	for _ in 1 2; do
		skuactl qps | awk -v a="${nics[0]}" -v b="${nics[1]}" '
			NR == 1 { print }
			$3 == "RC" && ($1 == a || $1 == b) { row[$2] = $0; peer[$2] = $5; waits[$2] = $11 > 0 }
			END { for (q in row) if (waits[q] || waits[peer[q]]) print row[q] }'
		for nic in "${nics[@]}"; do
			echo "$nic: $(skuactl --json counters "$nic" |
				grep -E '(timeouts|retransmits|duplicates|order|nak|cnp|bad)[a-z_]*": [1-9]' | tr -d ' \n')"
		done
		skuactl impair "${nics[0]}"
		sleep 1
	done
}

# of NAME: a counter, both NICs together.
of() {
	local nic
	for nic in "${nics[@]}"; do
		skuactl --json counters "$nic"
	done | awk -v name="\"$1\":" '$1 == name { sum += $2 } END { print sum + 0 }'
}

recover_by() {
	local nic
	for nic in "${nics[@]}"; do
		skuactl inject "$nic" none || return
		[ "$1" = selective ] || skuactl inject "$nic" go-back-n || return
	done
}

# How many frames were lost by rules that lose some: who receives a corrupt packet drops it.
lost() { skuactl impair "${nics[0]}" | awk '/^(drop|corrupt)=/ { sum += $NF } END { print sum + 0 }'; }
# How many frames the rules did something to.
impaired() { skuactl impair "${nics[0]}" | awk 'NR > 1 { sum += $NF } END { print sum + 0 }'; }

# traffic SECONDS ROUND
traffic() {
	local qps sizes
	read -r qps sizes <<<"${shapes[$2 % ${#shapes[@]}]}"
	echo "QPs: $qps, seed: $seed"
	left timeout $(($1 + 120)) rdma_traffic -Q -t "$1" -p "$patience" -q "$qps" -s "$sizes" -r "$seed" \
		-x "bash $0 state ${nics[0]#skua} >&2" "${devices[@]}"
}

# suffers SECONDS RULE...: runs of 2 to 15 s.
suffers() {
	local total=$1 run round=0 status=0
	shift
	run=$((total / 4 < 2 ? 2 : total / 4 > 15 ? 15 : total / 4))
	# A seed without a rule is refused.
	skuactl impair "${nics[0]}" "${@:-none}" ${1:+"seed=$seed"} || return
	while [ $((round * run)) -lt "$total" ] && [ $status = 0 ]; do
		traffic "$run" "$round"
		status=$?
		seed=$((seed + 1)) round=$((round + 1))
	done
	if [ "$(impaired)" = 0 ] && [ $# -gt 0 ]; then
		echo 'the rules met no frame'
		status=1
	fi
	lost=$(lost)
	skuactl impair "${nics[0]}" none >/dev/null
	return $status
}

# With NAKs for lost packets, or without: else the other way of recovery was tested. Until both NICs have agreed on
# selective repeat, they send a few NAKs. Where more than a few frames are lost, something is retransmitted in any case.
# After an outage this may be because of timeouts alone.
recovers_by() {
	local way=$1 naks sent lost=0
	shift
	naks=$(of seq_nak_sent) sent=$(of retransmits)
	suffers "$@" || return
	naks=$(($(of seq_nak_sent) - naks)) sent=$(($(of retransmits) - sent))
	echo "$lost lost, $naks NAKs, $sent retransmitted"
	[ "$lost" -lt 20 ] || [ $sent -gt 0 ] || return
	case $way in
	selective) [ $((20 * naks)) -le $sent ] ;;
	go-back-n) [ "$lost" -lt 20 ] || [[ $* == *,for=* ]] || [ $naks -gt 0 ] ;;
	esac
}

# lane PAIR PAIRS: this pair's share of the impairments, each in both ways. The output of each case, with its status
# as the last line, is a file.
lane() {
	local name rules way number=0
	pair "$1"
	while read -r name rules; do
		if [ $((number++ % $2)) = "$1" ]; then
			for way in selective go-back-n; do
				{
					# shellcheck disable=SC2086
					recover_by $way && recovers_by $way $((seconds / 2)) $rules
					echo $?
				} >"$out/$name.$way" 2>&1 </dev/null
			done
		fi
	done <<<"$list"
	recover_by selective
	skuactl impair "${nics[0]}" none >/dev/null
}

# outcome FILE: what a case said, and how it ended.
outcome() {
	sed '$d' "$1"
	tell "$(grep NAKs "$1")"
	return "$(tail -n 1 "$1")"
}

# What rdma_traffic runs when nothing completes any more.
if [ "${1:-}" = state ]; then
	pair $(($2 / 2))
	state
	exit
fi

list=$(grep -E "^($chosen)" <<<"$impairments") || { echo "SKUA_LOSS_CASES: no impairment matches '$chosen'" >&2; exit 1; }
devices=(/sys/class/infiniband/skua_*)
pairs=$((${#devices[@]} / 2))
pair 0
t 'no impairment' suffers 4
lanes=()
for ((i = 0; i < pairs; i++)); do
	lane $i $pairs &
	lanes+=($!)
done
wait "${lanes[@]}"
while read -r name rules; do
	for way in selective go-back-n; do
		t "$name ($rules), $way" outcome "$out/$name.$way"
	done
done <<<"$list"
end
