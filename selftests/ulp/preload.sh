#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Programs of TCP, unchanged, over rsockets between two guests: librspreload of rdma-core 65 makes rsockets of their
# sockets. iperf3 sends, curl gets a file from Python's server, whose sum is compared, and ssh comes through socat.
#
# SKUA_PRELOAD_MIB is the size of the file (256). It is in the memory of node2.

. "$(dirname "$0")/peer.sh"

mib=${SKUA_PRELOAD_MIB:-256}
preload="env LD_PRELOAD=$(echo /usr/lib/*/rsocket/librspreload.so)"

# iperf OPTIONS. They give bytes (-n), since a test of so many seconds (-t) does not end: its server does not read the
# client's last byte, though select() says that it is there.
iperf() { meet 5201 "$preload iperf3 -s -1" "$preload iperf3 -c $address $1"; }

# shellcheck disable=SC2029 # the size is ours
file() { ssh -n $peer "mkdir /tmp/served && head -c ${mib}M /dev/urandom >/tmp/served/file"; }
sum() { ssh -n $peer 'md5sum </tmp/served/file'; }
web() { start "$preload python3 -m http.server -d /tmp/served 8000" web && within 20 ready 8000; }
get() { $preload curl -sS --fail --max-time $((240 * slowness)) "http://$address:8000/file" | md5sum >/tmp/sum; }
fetch() { get && [ "$(</tmp/sum)" = "$(sum)" ]; }

# sshd gives each connection to another program, which rsockets do not survive; socat stays.
gate() { start "$preload socat TCP-LISTEN:2222,reuseaddr EXEC:'/usr/sbin/sshd -i'" gate && within 20 ready 2222; }
shell() {
	head -c 8M /dev/urandom >/tmp/typed
	[ "$(ssh -o ProxyCommand="$preload socat - TCP:$address:2222" $peer md5sum </tmp/typed)" = \
	  "$(md5sum </tmp/typed)" ]
}
clean() { stop web && ssh -n $peer rm -r /tmp/served; }

t 'iperf3' by_rdma $((64 << 20)) iperf '-n 64M'
t 'iperf3, the other way' by_rdma $((64 << 20)) iperf '-n 64M -R'
t 'iperf3, four at a time' by_rdma $((64 << 20)) iperf '-n 64M -P 4'
t 'a file' file
t "a server of Python's" web
t "curl, $mib MiB" by_rdma $((mib << 20)) fetch
for fault in outage loss; do
	t "iperf3, $fault" during $fault iperf '-n 400M'
	t "curl, $fault" during $fault fetch
done
t 'curl, afterwards' by_rdma $((mib << 20)) fetch
t 'a server for ssh' gate
t 'ssh' by_rdma $((8 << 20)) shell
t 'the server ends' clean
t 'nothing is left' nothing_is_left
end
