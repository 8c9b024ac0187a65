#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# RDS over RDMA between two guests, by the stock kernel's modules and a program of ours (rds.py): messages,
# and memory that the peer reads and writes by RDMA.
#
# usage: rds.sh serve ADDRESS          a server, until the client ends it
#        rds.sh use ADDRESS            a client, which compares: TAP
#        rds.sh lose ADDRESS           a client whose server dies: TAP
here=$(dirname "$0")
. "$here/../tap.sh"
. "$here/faults.sh"

role=$1 address=$2
rds() { "$here/rds.py" "$1" "$address" "${@:2}"; }
# Linux 7.2 cannot unload RDS: rds_ib_exit() waits for a work queue that connections do not share any more, forgets those
# that still go down, and frees what they use. It stays loaded there.
unloaded() {
	case $(uname -r) in
	6.*) unload rds_rdma rds ;;
	*) no_errors_in_log ;;
	esac
}
no_errors_in_log() { ! dmesg | grep -E 'skua.*(error|failed)' | grep -v verification; }

if [ "$role" = serve ]; then
	modprobe rds_rdma && rds serve && unloaded
	exit
fi
t 'load' modprobe rds_rdma
t 'the server answers' rds reach
if [ "$role" = lose ]; then
	# RDS connects for as long as there is a socket: it is the program that waits no longer.
	t 'messages are not answered when the server dies' dying 90 rds messages 600
	t 'unload, where the kernel can' unloaded
	t 'the log has no errors' no_errors_in_log
	end
fi
t 'messages' rds messages 3
t 'it is RDMA' rds shows
t 'RDMA READ and WRITE of memory that a message names' rds remote 3
t 'messages while the link goes down and up' flapping 3 rds messages 8
t 'RDMA while the link goes down and up' flapping 3 rds remote 8
t 'messages while 1% of the frames are lost' lossy rds messages 5
t 'RDMA while 1% of the frames are lost' lossy rds remote 5
t 'messages afterwards' rds messages 2
t 'RDMA afterwards' rds remote 2
t 'end' rds end
t 'unload, where the kernel can' unloaded
t 'the log has no errors' no_errors_in_log
end
