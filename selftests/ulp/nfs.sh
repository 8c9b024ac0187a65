#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# NFS over RDMA between two guests, by the stock kernel's modules: the client registers memory for
# what is read and written, and the server invalidates it with its replies.
#
# usage: nfs.sh serve ADDRESS          a server with files in memory
#        nfs.sh use ADDRESS            a client, which writes and reads, and compares: TAP
. "$(dirname "$0")/../tap.sh"

role=$1 address=$2
files=/srv/files mounted=/mnt/nfs
mib=4

serve() {
	mkdir -p $files
	mount -t tmpfs files $files
	modprobe -a nfsd rpcrdma
	mount -t nfsd nfsd /proc/fs/nfsd
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	exportfs -o rw,fsid=0,no_root_squash,insecure "*:$files"
	rpc.mountd -N 2 -N 3
	rpc.nfsd -N 3 -V 4.2 --rdma=20049 4
	echo Y >/proc/fs/nfsd/v4_end_grace
}

attach() {
	mkdir -p $mounted
	mount -t nfs4 -o "rdma,port=20049,vers=4.2,$1" "$address:/" $mounted
}
detach() { umount $mounted; }
over_rdma() { grep "$mounted.*proto=rdma" /proc/mounts; }
put() { dd if=/tmp/data of=$mounted/data bs="$1" conv=fsync; }
# From the server: not from the client's own memory.
compare() { echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/data $mounted/data; }
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
no_errors_in_log() { ! dmesg | grep -E 'rpcrdma.*(error|failed)|nfs.*not responding|skua.*(error|failed)' | grep -v verification; }

set -o pipefail
if [ "$role" = serve ]; then
	set -e
	serve
	exit 0
fi
modprobe rpcrdma
head -c ${mib}M /dev/urandom >/tmp/data
head -c 5000 /dev/urandom >/tmp/small
for size in 4096 1048576; do
	t "mount, $size bytes at a time" attach "rsize=$size,wsize=$size"
	t 'it is RDMA' over_rdma
	t 'write' put 64k
	t 'read' compare
	t 'many files' many
	t 'unmount' detach
done
t 'the log has no errors' no_errors_in_log
end
