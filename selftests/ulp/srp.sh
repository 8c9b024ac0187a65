#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# SCSI RDMA protocol (SRP) between two guests: the stock kernel's target and initiator, which meet by rdma_cm.
# Variants:
#
#   plain      the initiator registers memory for each command
#   death      the initiator gives up after seconds
. "$(dirname "$0")/ulp.sh"
. "$(dirname "$0")/lio.sh"

remote=/sys/class/srp_remote_ports
gid=/sys/class/infiniband/skua_0/ports/1/gids/0

# ib_srpt knows an initiator that comes by rdma_cm by the address that it came to, which it takes for the initiator's.
user=$address
# The target's port has the name of the last half of its first GID.
group() { echo "$target/srpt/$(cut -d: -f5- $gid)/tpg"; }

serve() {
	local port
	make_disk
	# Without a GUID it takes that of the NIC that it finds first.
	modprobe ib_srpt srpt_service_guid="0x$(tr -d : </sys/class/infiniband/skua_0/node_guid)"
	port=$(group)
	mkdir -p "$port"
	echo 5555 >"$target/srpt/discovery_auth/rdma_cm_port"
	as_lun "$port"
	mkdir -p "$port/acls/$user/lun_0"
	ln -s "$port/lun/lun_0" "$port/acls/$user/lun_0/disk"
	echo 1 >"$port/enable"
}

stop() {
	local port
	port=$(group)
	echo 0 >"$port/enable"
	rm "$port/acls/$user/lun_0/disk"
	rmdir "$port/acls/$user/lun_0" "$port/acls/$user"
	no_lun "$port"
	rmdir "$port" "${port%/*}" "$target/srpt"
	modprobe -r ib_srpt
	remove_disk
}

# The GUID of the target's device is that of its MAC.
guid_of_peer() {
	local mac
	ping -q -c 1 "$address" >&2
	mac=$(ip neigh show "$address" | sed -n 's/.*lladdr \([0-9a-f:]*\).*/\1/p')
	[ -n "$mac" ]
	# shellcheck disable=SC2086
	set -- ${mac//:/ }
	printf '%02x%s%sfffe%s%s%s' $((0x$1 ^ 2)) "$2" "$3" "$4" "$5" "$6"
}

attach() {
	local peer patience=300
	[ "$variant" != death ] || patience=5
	modprobe -a sd_mod ib_srp
	peer=$(guid_of_peer)
	echo "id_ext=$peer,ioc_guid=$peer,dest=$address:5555" >/sys/class/infiniband_srp/srp-skua_0-1/add_target
	within 20 test -b $disk
	echo 1 >$remote/port-*/reconnect_delay
	echo $patience >$remote/port-*/fast_io_fail_tmo
}

# A port that is blocked waits for fast_io_fail_tmo, and for an attempt to connect, which takes a minute. ib_srp of 7.2
# does not stop that timer before it frees what its work needs.
is_not_blocked() { ! grep -q blocked $remote/port-*/state; }

detach() {
	within 150 is_not_blocked
	echo 1 >$remote/port-*/delete
	within 20 test ! -e $disk
	modprobe -r ib_srp
	unload_sd_mod
}

"$verb"
