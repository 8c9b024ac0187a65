# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Faults of the wire between two guests, and the end of a scenario, for the scripts here that set $address.
# skuactl in a guest speaks to the skuad of both.

. "$(dirname "${BASH_SOURCE[0]}")/counters.sh"

# The name of this guest's NIC: skuad and the guest call it the same.
nic=$(awk '{ print $2; exit }' /usr/lib/skua-lab/nics.list)

# lossy COMMAND...: run it while 1% of the frames of both directions are lost. RC has to retransmit some, since the lost
# frames may all be others.
lossy() {
	local status before
	before=$(counted retransmits)
	skuactl impair "$nic" drop=1% || return
	"$@"
	status=$?
	skuactl impair "$nic" none && [ $status = 0 ] && has_counted retransmits "$before" 1
}

# keep SECONDS COMMAND...: run it again and again for so long.
keep() {
	local end=$((SECONDS + $1))
	shift
	while :; do
		"$@" || return
		[ $SECONDS -lt $end ] || return 0
	done
}

# RDMA data that this guest has sent, in units of 4 bytes.
sent() { cat /sys/class/infiniband/*/ports/1/counters/port_xmit_data; }
has_sent_since() { [ "$(sent)" -gt $(($1 + 25000)) ]; }

# flapping SECONDS COMMAND...: run it, and take the link down for so long once it has sent 100 kB.
flapping() {
	local down=$1 before
	shift
	before=$(sent)
	"$@" &
	within 20 has_sent_since "$before" || return
	kill -0 $! || return
	skuactl link "$nic" down || return
	sleep "$down"
	skuactl link "$nic" up || return
	wait $!
}

# dying SECONDS COMMAND...: run it, and let the other guest be killed (test-ulp) once it has sent 100 kB. It has to fail in
# this time.
# shellcheck disable=SC2154 # within.sh sets slowness
dying() {
	local most=$1 before start status
	shift
	before=$(sent)
	"$@" &
	within 20 has_sent_since "$before" && kill -0 $! && : >/tmp/moves || return
	start=$SECONDS
	wait $!
	status=$?
	tell "failed after $((SECONDS - start)) s"
	[ $status != 0 ] && [ $((SECONDS - start)) -le $((most * slowness)) ]
}

# has_none KIND... -- MODULE...: the RDMA device has no objects of these kinds that the modules made.
has_none() {
	local kinds=() kind module
	while [ "$1" != -- ]; do kinds+=("$1"); shift; done
	shift
	for kind in "${kinds[@]}"; do
		for module; do
			! rdma resource show "$kind" | grep -F "[$module]" || return
		done
	done
}

# unload MODULE...: the modules go, and nothing that they made is left in the RDMA device.
unload() { within 20 modprobe -r "$@" && has_none qp cq mr pd cm_id -- "$@"; }

# A server waits until its client says end.
# shellcheck disable=SC2154 # address
serve_until_end() { nc -l "$address" 4444 >/dev/null; }
end_server() { : >"/dev/tcp/$address/4444"; }
