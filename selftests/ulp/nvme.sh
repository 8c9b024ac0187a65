#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# NVMe over RDMA between two guests, by the stock kernel's modules: the host registers memory for
# each command, and the target invalidates it with its response.
#
# usage: nvme.sh serve ADDRESS         a target with a disk in memory
#        nvme.sh use ADDRESS           a host, which writes and reads, and compares: TAP
. "$(dirname "$0")/../tap.sh"

role=$1 address=$2
subsystem=nqn.2026-01.org.skua:disk
nvmet=/sys/kernel/config/nvmet
disk=/dev/nvme0n1
mib=8

serve() {
	local here=$nvmet/subsystems/$subsystem port=$nvmet/ports/1
	modprobe brd rd_nr=1 rd_size=$((mib * 1024))
	modprobe -a nvmet nvmet-rdma
	mkdir -p "$here/namespaces/1" "$port"
	echo 1 >"$here/attr_allow_any_host"
	echo -n /dev/ram0 >"$here/namespaces/1/device_path"
	echo 1 >"$here/namespaces/1/enable"
	echo ipv4 >"$port/addr_adrfam"
	echo rdma >"$port/addr_trtype"
	echo "$address" >"$port/addr_traddr"
	echo 4420 >"$port/addr_trsvcid"
	ln -s "$here" "$port/subsystems/"
}

connect() { nvme connect -t rdma -a "$address" -s 4420 -n $subsystem "$@" && within 10 test -b $disk; }
disconnect() { nvme disconnect -n $subsystem && within 10 test ! -e $disk; }
# In pieces of $1, each of which is one command.
put() { dd if=/tmp/data of=$disk bs="$1" iflag=fullblock oflag=direct; }
compare() { cmp /tmp/data <(dd if=$disk bs="$1" iflag=direct 2>/dev/null); }
# Many commands at a time, which fio compares.
random() {
	fio --name=random --filename=$disk --size=${mib}M --rw=randwrite --bsrange=4k-256k --direct=1 \
		--ioengine=libaio --iodepth=16 --verify=crc32c --do_verify=1 --verify_fatal=1
}
no_errors_in_log() { ! dmesg | grep -E 'nvme.*(error|failed|timeout|reconnect)|skua.*(error|failed)' | grep -v verification; }

set -o pipefail
if [ "$role" = serve ]; then
	set -e
	serve
	exit 0
fi
modprobe nvme-rdma
head -c ${mib}M /dev/urandom >/tmp/data
for queues in 1 2; do
	t "connect, $queues queues" connect --nr-io-queues=$queues
	t 'write' put 256k
	t 'read' compare 128k
	t 'read in pages' compare 4k
	t 'random' random
	t 'disconnect' disconnect
done
t 'the log has no errors' no_errors_in_log
end
