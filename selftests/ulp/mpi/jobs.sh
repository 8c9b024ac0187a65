# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Jobs of MPI by the programs here, which compare their data. The caller sets mpi (openmpi or mpich), and defines
# launch HOSTS EACH COMMAND..., which starts $ranks ranks, EACH of them on each host.

. "$(dirname "${BASH_SOURCE[0]}")/../peer.sh"

# job NUMBER RANKS PROGRAM [SECONDS]: ranks on the first NUMBER guests, evenly. All that the program says it has moved
# must have gone by RDMA.
# shellcheck disable=SC2154 # here, mpi
job() {
	local number=$1 ranks=$2 program=$here/mpi/$mpi/$3 before moved
	shift 3
	before=$(sent)
	launch "${guests[*]:0:$number}" $((ranks / number)) "$program" "$@" </dev/null >/tmp/job 2>&1 || return
	moved=$(sed -n 's/^moved \([0-9]*\) bytes$/\1/p' /tmp/job)
	has_sent "$before" "${moved:?}" ||
		{ echo "$moved bytes were moved, but $(($(sent) - before)) by RDMA: it took another transport"; return 1; }
}
# By launch.
bounded() { timeout $((300 * slowness)) "$@"; }
# A job, and some of what it says, or all if it fails.
told() {
	"$@" || { tr -d '\0' </tmp/job; return 1; }
	grep -E '^(latency, 8 B|bandwidth, 1048576|allreduce, 8 B)' /tmp/job | while read -r line; do
		tell "$line"
	done
}

every_program='messages collectives onesided'
programs=$every_program
# all_shapes WAY: each of $programs with 2, 4 and 8 ranks, as far as there are guests; then while the wire is bad.
all_shapes() {
	local shape program fault all=${#guests[@]}
	for shape in '2 2' '4 4' '4 8'; do
		# shellcheck disable=SC2086 # two words
		set -- "$1" $shape
		[ "$2" -le "$all" ] || continue
		for program in $programs; do
			t "$1$3 ranks in $2 guests, $program" told job "$2" "$3" $program
		done
	done
	for fault in outage loss; do
		for program in $programs; do
			t "$1$fault, $program" during $fault told job "$all" "$all" $program 10
		done
	done
	t "${1}afterwards" told job "$all" "$all" collectives
}

# alone "$@": if the arguments of the script are "job ...", runs that job and nothing else.
alone() {
	[ "${1:-}" = job ] || return 0
	"$@"
	exit
}
