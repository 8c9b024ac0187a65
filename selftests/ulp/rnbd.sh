#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The RDMA network block device (rnbd over rtrs) between two guests, by the stock kernel's modules: a client writes
# to the server's memory with immediate data, and registers its own for what it reads.
#
# usage: rnbd.sh serve ADDRESS         a server with a disk in memory, until the client ends it
#        rnbd.sh use ADDRESS           a client, which writes and reads, and compares: TAP
#        rnbd.sh lose ADDRESS          a client whose server dies: TAP
here=$(dirname "$0")
. "$here/../tap.sh"
. "$here/faults.sh"

role=$1 address=$2
disk=/dev/rnbd0
control=/sys/devices/virtual/rnbd-client/ctl
mib=8

attach() {
	echo "sessname=$1 path=ip:$address device_path=/dev/ram0" >$control/map_device && within 10 test -b $disk
}
detach() { echo "${1:-normal}" >/sys/block/rnbd0/rnbd/unmap_device && within 10 test ! -e $disk; }
# Its sessions end later than their devices, and rnbd_client does not wait for them when it is unloaded (Linux 6.12).
no_sessions() { [ -z "$(ls /sys/class/rtrs-client)" ]; }
sessions_end() { within 20 no_sessions && sleep 1; }
put() { dd if=/tmp/data of=$disk bs="$1" iflag=fullblock oflag=direct; }
compare() { cmp /tmp/data <(dd if=$disk bs="$1" iflag=direct 2>/dev/null); }
random() {
	fio --name=random --filename=$disk --size=${mib}M --rw=randwrite --bsrange=4k-256k --direct=1 \
		--ioengine=libaio --iodepth=16 --verify=crc32c --do_verify=1 --verify_fatal=1
}
no_errors_in_log() { ! dmesg | grep -E 'skua.*(error|failed)' | grep -v verification; }

if [ "$role" = serve ]; then
	set -e
	modprobe brd rd_nr=1 rd_size=$((mib * 1024))
	modprobe rnbd_server
	serve_until_end
	unload rnbd_server rtrs_server
	modprobe -r brd
	exit
fi
head -c ${mib}M /dev/urandom >/tmp/data
t 'load' modprobe rnbd_client
t 'map' attach first
if [ "$role" = lose ]; then
	t 'I/O fails when the server dies' dying 120 keep 600 random
	t 'unmap' detach force
	t 'sessions end' sessions_end
	t 'unload' unload rnbd_client rtrs_client
	t 'the log has no errors' no_errors_in_log
	end
fi
t 'write' put 256k
t 'read' compare 128k
t 'read in pages' compare 4k
t 'random' random
t 'while the link goes down and up' flapping 3 keep 8 random
t 'while 1% of the frames are lost' lossy keep 5 random
t 'afterwards' random
t 'unmap' detach
t 'map again' attach second
t 'write again' put 1M
t 'read again' compare 1M
t 'unmap again' detach
t 'sessions end' sessions_end
t 'unload' unload rnbd_client rtrs_client
t 'end' end_server
t 'the log has no errors' no_errors_in_log
end
