#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# rsockets between two guests, by librdmacm's programs: rstream and riostream compare what they receive (-T v), and
# rcopy sends a file, whose sum is compared.
#
# SKUA_RSOCKETS_MIB is the size of the file (256).

. "$(dirname "$0")/peer.sh"

mib=${SKUA_RSOCKETS_MIB:-256}

# stream PROGRAM OPTIONS
stream() { meet 7471 "$1 -b $address -T v $2" "$1 -s $address -T v $2"; }

server() { start rcopy && within 20 ready 7427; }
file() { head -c "${mib}M" /dev/urandom >/tmp/file; }
copy() {
	by_rdma $((mib << 20)) timeout $((120 * slowness)) rcopy /tmp/file $peer:/tmp/copy &&
		[ "$(md5sum </tmp/file)" = "$(ssh -n $peer 'md5sum </tmp/copy')" ]
}
clean() { stop && rm /tmp/file && ssh -n $peer rm /tmp/copy; }

for program in rstream riostream; do
	t "$program, all sizes" stream $program '-S all -C 10 -I 1'
	t "$program, nonblocking" stream $program '-S 20000 -C 50 -T n'
	for fault in outage loss; do
		t "$program, $fault" during $fault stream $program '-S 65536 -C 3000'
	done
done
t 'a file' file
t 'a server of rcopy' server
t "rcopy, $mib MiB" copy
for fault in outage loss; do
	t "rcopy, $fault" during $fault copy
done
t 'rcopy, afterwards' copy
t 'the server ends' clean
t 'nothing is left' nothing_is_left
end
