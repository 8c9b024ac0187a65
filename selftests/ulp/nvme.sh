#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# NVMe over RDMA between two guests, by the stock kernel's modules. Variants:
#
#   plain          the host registers memory for each command, and the target invalidates it with its response
#   unregistered   one segment needs no registration: the host passes the key that covers all memory
#   srq            the target's queues share SRQs
#   poll           a queue of the host is polled: its CQ is polled directly
#   any            the target listens at all addresses, so that a reset of its NIC leaves the port
#   multipath      two paths to one disk
#   death          the host gives up after seconds
. "$(dirname "$0")/ulp.sh"

subsystem=nqn.2026-01.org.skua:disk
nvmet=$config/nvmet
disk=/dev/nvme0n1

port() {
	mkdir "$nvmet/ports/$1"
	echo ipv4 >"$nvmet/ports/$1/addr_adrfam"
	echo rdma >"$nvmet/ports/$1/addr_trtype"
	echo "$2" >"$nvmet/ports/$1/addr_traddr"
	echo 4420 >"$nvmet/ports/$1/addr_trsvcid"
	ln -s $nvmet/subsystems/$subsystem "$nvmet/ports/$1/subsystems/"
}

serve() {
	local here=$nvmet/subsystems/$subsystem srq=N number=0
	[ "$variant" != srq ] || srq=Y
	modprobe brd rd_nr=1 rd_size=$((mib * 1024))
	modprobe nvmet-rdma use_srq=$srq
	mkdir $here $here/namespaces/1
	echo 1 >$here/attr_allow_any_host
	echo -n /dev/ram0 >$here/namespaces/1/device_path
	echo 1 >$here/namespaces/1/enable
	[ "$variant" != any ] || set -- 0.0.0.0
	for address; do
		number=$((number + 1))
		port $number "$address"
	done
}

# nvmet goes without SRQs silently if it cannot create them.
used() {
	local srqs
	srqs=$(rdma resource show srq | grep -cF '[nvmet_rdma]' || true)
	echo "$srqs SRQs of nvmet"
	if [ "$variant" = srq ]; then
		[ "$srqs" -gt 0 ]
	else
		[ "$srqs" = 0 ]
	fi
}

stop() {
	rm $nvmet/ports/*/subsystems/*
	rmdir $nvmet/ports/* $nvmet/subsystems/*/namespaces/* $nvmet/subsystems/*
	modprobe -r nvmet-rdma
	modprobe -r brd
}

path() {
	local options=(--nr-io-queues=2 --reconnect-delay=1 --ctrl-loss-tmo=600 --keep-alive-tmo=5)
	case $variant in
	poll) options+=(--nr-poll-queues=1) ;;
	death) options+=(--fast_io_fail_tmo=3) ;;
	esac
	nvme connect -t rdma -a "$1" -s 4420 -n $subsystem "${options[@]}"
}

# The states of all paths are the one that is given.
paths_are() { [ "$(sort -u /sys/class/nvme/nvme*/state)" = "$1" ]; }

attach() {
	local always=Y registers=Y
	[ "$variant" != unregistered ] || always=N
	modprobe nvme-rdma register_always=$always
	for address; do
		path "$address"
	done
	within 20 test -b $disk
	# Only without registration has the host a key that covers all memory.
	rdma -d resource show pd >pds
	grep -F '[nvme_rdma]' pds
	if grep -F '[nvme_rdma]' pds | grep -q unsafe_global_rkey; then
		registers=N
	fi
	[ $registers = $always ]
	rdma -dd resource show mr >mrs
	head -n 4 mrs
	# Other NICs tell less.
	if grep -q '^dev skua_' mrs; then
		grep -FA1 '[nvme_rdma]' mrs >details
		grep -q 'drv_kind fast-registration drv_pinned_pages 0 drv_max_fast_entries [1-9]' details
	fi
	if [ "$variant" = multipath ]; then
		echo round-robin >/sys/class/nvme-subsystem/nvme-subsys0/iopolicy
		[ "$(ls -d /sys/class/nvme/nvme* | wc -l)" = 2 ]
	fi
	if [ "$variant" = poll ]; then
		[ "$(</sys/block/nvme0n1/queue/io_poll)" = 1 ]
		rdma resource show cq >cqs
		grep 'poll-ctx DIRECT' cqs
	fi
}

polled() { [ "$variant" != poll ] || echo --ioengine=io_uring --hipri; }
move() {
	write_and_compare $disk
	# shellcheck disable=SC2046
	verified $disk 0 $(polled)
}
# shellcheck disable=SC2046
load() { passes $disk $(polled); }

# The NIC of the first path leaves its bus, and comes back.
pull() { echo 1 >/sys/class/net/skua0/device/remove; }
plug() {
	local lab=/usr/lib/skua-lab
	echo 1 >/sys/bus/pci/rescan
	head -n 1 $lab/nics.list | $lab/nics alone
}

# Both paths work.
whole() { within 60 paths_are live; }
# The first path was taken away with its device.
again() {
	[ "$(ls -d /sys/class/nvme/nvme* | wc -l)" = 1 ]
	path "$address"
	whole
}

detach() {
	nvme disconnect -n $subsystem
	within 20 test ! -e $disk
	modprobe -r nvme-rdma
}

"$verb" "${@:3}"
