# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For scenarios of several guests, node1, node2 and so on, whose NICs are on one wire: a scenario runs on node1 and
# starts servers on node2 by ssh. It tests in TAP (tap.sh).

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
. "$(dirname "${BASH_SOURCE[0]}")/counters.sh"

# shellcheck disable=SC2034 # for those who source this
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
peer=node2
# shellcheck disable=SC2034
address=$(getent ahostsv4 $peer | { read -r found _; echo "$found"; })

# The names of all guests.
readarray -t guests < <(sed -n 's/.* \(node[0-9]*\)$/\1/p' /etc/hosts)

# ready PORT: something listens there on the peer, a TCP port or one of rdma_cm.
ready() {
	# shellcheck disable=SC2029 # the port is ours
	ssh $peer "ss -ltnH | grep -q ':$1 ' || rdma resource show cm_id | grep -q 'state LISTEN.*:$1 '"
}

# meet PORT SERVER CLIENT: two commands of the shell, one on the peer that listens at PORT, and one here. Both have to
# end well.
# shellcheck disable=SC2154 # within.sh sets slowness
meet() {
	local running status=0
	# shellcheck disable=SC2029 # the command is ours
	ssh -n $peer "timeout $((120 * slowness)) $2" &
	running=$!
	within 30 ready "$1" && timeout $((120 * slowness)) bash -c "$3" || status=1
	wait $running && [ $status = 0 ]
}

# start SERVER [NAME], and stop [NAME]: one that would serve for ever.
start() {
	# shellcheck disable=SC2029
	ssh -n $peer "cd /tmp; setsid $1 >/tmp/${2:-server}.log 2>&1 </dev/null & echo \$! >/tmp/${2:-server}.pid"
}
stop() { ssh -n $peer "kill \$(</tmp/${1:-server}.pid)"; }

# Bytes of RDMA that all NICs have sent.
sent() { counted rdma_tx_bytes; }
has_sent() { has_counted rdma_tx_bytes "$1" "$2"; }

# by_rdma BYTES COMMAND...: the command ends well, and the NICs have carried so much meanwhile.
by_rdma() {
	local least=$1 before
	before=$(sent)
	shift
	"$@" || return
	has_sent "$before" "$least" ||
		{ echo "$least bytes were moved, but $(($(sent) - before)) by RDMA: it took another transport"; return 1; }
}

# during FAULT COMMAND...: the command has to end well, though a fault comes once the NICs have sent 1 MB for it.
during() {
	local fault=$1 before running status=0
	before=$(sent)
	shift
	"$@" &
	running=$!
	within 60 has_sent "$before" 1000000 && kill -0 $running && $fault || status=1
	wait $running && [ $status = 0 ]
}
outage() { skuactl link $peer down && sleep 1 && skuactl link $peer up; }
# lossy_until COMMAND...: 1% of the frames are lost, both ways, for three seconds and until the command succeeds.
lossy_until() {
	local status=0
	skuactl impair $peer drop=1% || return
	sleep 3
	within 20 "$@" || status=1
	skuactl impair $peer none && return $status
}
# RC has to retransmit. The lost frames may be those of ssh.
loss() {
	local before
	before=$(counted retransmits)
	lossy_until has_counted retransmits "$before" 1 || { echo 'RC has retransmitted nothing'; return 1; }
}
# UD loses its datagrams, and the program repeats them.
has_lost() { skuactl impair $peer | awk 'NR > 1 { sum += $NF } END { exit !sum }'; }
datagram_loss() { lossy_until has_lost || { echo 'no frame was lost'; return 1; }; }

# Each scenario ends with this. RDMA objects of programs have a process, those of the kernel have none.
no_objects() {
	local guest found
	for guest in "${guests[@]}"; do
		found=$(ssh -n "$guest" 'for kind in ctx pd mr cq srq qp cm_id; do rdma resource show $kind || exit; done') ||
			return
		! grep ' pid ' <<<"$found" || return
	done
}
nothing_is_left() { within 20 no_objects; }
