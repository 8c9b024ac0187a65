#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# RDMA devices and network namespaces: shared, each namespace sees all devices; exclusive (lab run --netns exclusive), each
# device is in one namespace and can be moved. Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"

mode=$(rdma system show | grep -o 'netns [a-z]*')
number=0

# In a namespace: the names of its devices, and whether programs can open one.
devices() { "$@" rdma dev show | grep -o 'skua_[0-9]*' | sort | tr '\n' ' '; }
opens() { "$1" ibv_devinfo -d "$2" >/dev/null 2>&1; }

# The server is waited for by its own port.
# 192.0.2.1, as a GID.
has_address() { left grep -q ':ffff:c000:0201$' /sys/class/infiniband/skua_0/ports/1/gids/1; }
pings() {
	local pid status port=$((7200 + number++))
	right timeout 60 rping -s -a 192.0.2.2 -p $port -V >/dev/null 2>&1 &
	pid=$!
	within 5 eval "right rdma resource show cm_id | grep -q 'LISTEN.*:$port\>'"
	left timeout 60 rping -c -a 192.0.2.2 -p $port -C 20 -v -V >/tmp/pings 2>&1
	status=$?
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $status = 0 ]
}

shared() {
	[ "$mode" = 'netns shared' ] && [ "$(devices left)" = 'skua_0 skua_1 ' ] &&
		[ "$(devices env)" = 'skua_0 skua_1 ' ] && opens left skua_0 && opens left skua_1 && opens right skua_0
}
# A device has one namespace of its own only in the other mode, to which there is no way while there are namespaces.
shared_stays() {
	! rdma dev set skua_0 netns left && ! rdma system set netns exclusive && ! rdma system set netns nonsense && shared
}

exclusive() {
	[ "$(devices left)" = 'skua_0 ' ] && [ "$(devices right)" = 'skua_1 ' ] && [ -z "$(devices env)" ] &&
		opens left skua_0 && ! opens left skua_1 && ! opens right skua_0 && ! opens env skua_0
}
exclusive_stays() { ! rdma system set netns shared && exclusive; }
# Programs that use the device learn that they lose it, and others find it where it is.
moves() {
	local pid status
	left stdbuf -oL ibv_asyncwatch -d skua_0 >/tmp/watch 2>&1 &
	pid=$!
	within 5 grep -q '^skua_0' /tmp/watch
	left rdma dev set skua_0 netns right || return
	within 5 grep -qi fatal /tmp/watch && [ "$(devices right)" = 'skua_0 skua_1 ' ] && [ -z "$(devices left)" ] &&
		opens right skua_0 && ! opens left skua_0
	status=$?
	kill $pid 2>/dev/null
	wait $pid
	cat /tmp/watch
	! left rdma dev set skua_0 netns right || status=1
	! right rdma dev set skua_0 netns nonsense || status=1
	right rdma dev set skua_0 netns left && exclusive && return $status
}
# The RDMA device of a NIC that is reset begins anew, in the first namespace.
begins_anew() {
	local device
	device=$(left sh -c 'basename "$(readlink -f /sys/class/net/skua0/device)"')
	echo 1 >"/sys/bus/pci/devices/$device/reset" && [ "$(devices env)" = 'skua_0 ' ] &&
		rdma dev set skua_0 netns left && within 5 exclusive && within 5 has_address && pings
}
# A namespace that ends gives its device back.
namespace_ends() {
	ip netns add middle && left rdma dev set skua_0 netns middle && [ "$(devices ip netns exec middle)" = 'skua_0 ' ] &&
		ip netns del middle && within 5 eval '[ "$(devices env)" = "skua_0 " ]' &&
		rdma dev set skua_0 netns left && exclusive && within 5 has_address && pings
}

t 'connections' pings
if [ "$mode" = 'netns shared' ]; then
	t 'shared: all namespaces have all devices' shared
	t 'shared: what is refused' shared_stays
else
	t 'exclusive: each namespace has its device' exclusive
	t 'exclusive: what is refused' exclusive_stays
	t 'exclusive: a device is moved' moves
	t 'exclusive: connections afterwards' eval 'within 5 has_address && pings'
	t 'exclusive: a device that is reset' begins_anew
	t 'exclusive: a namespace ends' namespace_ends
fi
end
