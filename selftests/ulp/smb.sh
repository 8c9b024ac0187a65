#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# SMB Direct between two guests, by the stock kernel's ksmbd and cifs: the client registers memory for large
# reads and writes, and the server reads and writes it by RDMA.
#
# usage: smb.sh serve ADDRESS          a server with files in memory, until the client ends it
#        smb.sh use ADDRESS            a client, which writes and reads, and compares: TAP
#        smb.sh lose ADDRESS           a client whose server dies: TAP
here=$(dirname "$0")
. "$here/../tap.sh"
. "$here/faults.sh"
. "$here/debug.sh"

role=$1 address=$2
files=/srv/smb mounted=/mnt/smb
mib=8 large=1048576

# ksmbd of 6.12 maps what it sends as a list and unmaps it page by page: the same where DMA is direct. But the kernel's
# record of what is mapped is wrong from then on.
serve() {
	warn_of_dma 0
	mkdir -p $files /etc/ksmbd
	mount -t tmpfs files $files
	chmod 777 $files
	modprobe ksmbd
	cat >/etc/ksmbd/ksmbd.conf <<-END
		[global]
			server signing = disabled
			store dos attributes = no
		[files]
			path = $files
			read only = no
	END
	ksmbd.adduser -a -p word tester
	ksmbd.mountd
}
clean() {
	ksmbd.control -s
	umount $files
	unload ksmbd
	warn_of_dma 1
}

attach() {
	mkdir -p $mounted
	mount -t cifs -o "rdma,vers=3.1.1,username=tester,password=word,$1" "//$address/files" $mounted
}
detach() { umount $mounted; }
# The connection is RDMA's: data that is written counts at the NIC's RDMA.
over_rdma() {
	local before
	before=$(sent)
	put 64k && has_sent_since "$before"
}
put() { dd if=/tmp/data of=$mounted/data bs="$1" conv=fsync; }
# From the server: not from the client's own memory.
compare() { echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/data $mounted/data; }
both_ways() { put 1M && compare; }
many() {
	local i
	for i in {1..30}; do
		cp /tmp/small $mounted/small.$i || return
	done
	echo 3 >/proc/sys/vm/drop_caches
	for i in {1..30}; do
		cmp /tmp/small $mounted/small.$i || return
	done
}
no_errors_in_log() { ! dmesg | grep -E 'skua.*(error|failed)' | grep -v verification; }

if [ "$role" = serve ]; then
	set -e
	serve
	serve_until_end
	clean
	exit
fi
# When a connection ends, the client of 6.12 posts receives to the QP in error for as long as they come back at once. In
# a slow kernel, that may take minutes.
warn_of_hangs_after 600
head -c ${mib}M /dev/urandom >/tmp/data
head -c 5000 /dev/urandom >/tmp/small
if [ "$role" = lose ]; then
	t 'mount' attach "rsize=$large,wsize=$large,soft,echo_interval=2"
	t 'writing fails when the server dies' dying 120 keep 600 put 1M
	t 'unmount' detach
	t 'unload' unload cifs
	t 'the log has no errors' no_errors_in_log
	end
fi
for size in 65536 $large; do
	t "mount, $size bytes at a time" attach "rsize=$size,wsize=$size"
	t 'it is RDMA' over_rdma
	t 'write' put 64k
	t 'read' compare
	t 'many files' many
	t 'while the link goes down and up' flapping 1 keep 8 both_ways
	t 'while 1% of the frames are lost' lossy keep 5 both_ways
	t 'afterwards' both_ways
	t 'unmount' detach
done
t 'unload' unload cifs
t 'end' end_server
t 'the log has no errors' no_errors_in_log
end
