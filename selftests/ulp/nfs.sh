#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# NFS over RDMA between two guests, by the stock kernel's modules: the client registers memory for what is read and
# written, and the server invalidates it with its replies. Variants:
#
#   v4.2   1 MiB at a time
#   v3     32 KiB at a time
#   death  like v4.2, and the client gives up after seconds
. "$(dirname "$0")/ulp.sh"

files=/srv/files mounted=/mnt/nfs

serve() {
	mkdir -p $files
	mount -t tmpfs files $files
	modprobe -a nfsd rpcrdma
	mount -t nfsd nfsd /proc/fs/nfsd
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	rpcbind
	exportfs -o rw,fsid=0,no_root_squash,insecure "*:$files"
	rpc.mountd -p 20048
	rpc.nfsd -V 4.2 --rdma=20049 4
	# A kernel that keeps no list of clients has no such time, and says that it is busy.
	echo Y >/proc/fs/nfsd/v4_end_grace || :
}

stop() {
	rpc.nfsd 0
	exportfs -au
	pkill -x rpc.mountd
	pkill -x rpcbind
	within 20 umount /proc/fs/nfsd
	umount $files
	modprobe -r nfsd
	modprobe -r rpcrdma
}

attach() {
	local options=rdma,port=20049 size=1048576 exported=/
	case $variant in
	v3)
		options+=,vers=3,nolock,mountproto=tcp,mountport=20048
		size=32768 exported=$files
		;;
	v4.2) options+=,vers=4.2 ;;
	death) options+=,vers=4.2,soft,timeo=50,retrans=1 ;;
	esac
	modprobe rpcrdma
	mkdir -p $mounted
	mount -t nfs -o "$options,rsize=$size,wsize=$size" "$address:$exported" $mounted
	grep "$mounted.*proto=rdma" /proc/mounts
}

# From the server: not from the client's own memory.
forget() { echo 3 >/proc/sys/vm/drop_caches; }

many_files() {
	head -c 5000 /dev/urandom >small
	for i in {1..30}; do
		cp small $mounted/small.$i
	done
	forget
	for i in {1..30}; do
		cmp small $mounted/small.$i
	done
}

through_the_cache() {
	cp data $mounted/copy
	sync
	forget
	cmp data $mounted/copy
}

move() {
	touch $mounted/load
	write_and_compare $mounted/data
	through_the_cache
	many_files
	verified $mounted/load 0
}

load() { passes $mounted/load; }

detach() {
	umount $mounted
	# Calls to a server that is dead, and attempts to connect to it, end later.
	within 120 modprobe -r nfsv4 nfsv3 2>/dev/null
	modprobe -r nfs
	within 120 modprobe -r rpcrdma 2>/dev/null
}

"$verb"
