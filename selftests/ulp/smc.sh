#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# SMC-R between two guests, by the stock kernel's module and a program of ours (smc.py). RoCEv2 is for version 2 of
# the protocol, which wants an EID at both ends. A link group has one link here: when it goes down its connections
# are lost, and new ones use RDMA again once it is up.
#
# A client whose NIC has no GIDs of RoCE v1 does not tell its MAC to the server (Linux 6.12 and 7.2), which then has no
# address for its QP, and declines. With a gateway between them the server looks the MAC up: the peer itself does.
#
# usage: smc.sh serve ADDRESS          a server, until the client ends it
#        smc.sh use ADDRESS            a client, which compares: TAP
#        smc.sh lose ADDRESS           a client whose server dies: TAP
here=$(dirname "$0")
. "$here/../tap.sh"
. "$here/faults.sh"

role=$1 address=$2
# A server is told its own address, a client the server's. The guests have those that end in 1 and 2.
peer=$address
[ "$role" != serve ] || peer=${address%.*}.$((3 - ${address##*.}))
smc() { "$here/smc.py" "$1" "$address" "${@:2}"; }
load() {
	modprobe -a smc smc_diag && "$here/smc.py" ueid add &&
		ip route replace "$peer/32" via "$peer" dev "$nic" onlink
}
# After a link went down, Linux 6.12 may keep a reference to a socket of SMC that is closed: no connection has it, no task
# waits for it, and its QP and memory are gone, but the module stays, with the CQs that it has for each NIC. Then also the
# QP of another link group may stay, which is idle: SMC frees it after ten minutes.
no_objects() { has_none qp mr pd cm_id -- smc; }
clean() {
	ip route delete "$peer/32" && unload smc_diag || return
	unload smc 2>/dev/null && return
	[[ $(uname -r) == 6.* ]] && [ -e /sys/module/smc ] || return
	within 70 no_objects >/dev/null
	no_objects && ! grep -lsF '[smc]' /proc/[0-9]*/stack &&
		echo "smc stays, for $(</sys/module/smc/refcnt) sockets that are closed"
}
# The kernel gives the handshake of a first contact two seconds, and falls back to TCP after that.
connects() { within 20 smc streams 1 1; }
no_errors_in_log() { ! dmesg | grep -E 'skua.*(error|failed)' | grep -v verification; }

if [ "$role" = serve ]; then
	load && smc serve && clean
	exit
fi
t 'load' load
t 'a first stream, which is RDMA' connects
if [ "$role" = lose ]; then
	t 'streams are lost when the server dies' dying 60 smc streams 600 8
	t 'unload' clean
	t 'the log has no errors' no_errors_in_log
	end
fi
t 'streams' smc streams 3 8
t 'streams while 1% of the frames are lost' lossy smc streams 5 8
t 'a stream is lost when the link goes down' flapping 3 smc lost 20
t 'new streams are RDMA' connects
t 'streams afterwards' smc streams 2 8
t 'end' smc end
t 'unload' clean
t 'the log has no errors' no_errors_in_log
end
