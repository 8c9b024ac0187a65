# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the scripts of storage protocols share. tools/lab/tests/test-storage calls them with a verb, a variant of the
# protocol, and the server's addresses. In one guest:
#
#   serve     make a server with storage in memory, from nothing
#   used      while the other guest is connected: what the variant says of the server is so
#   stop      end it and unload its modules
#
# and in the other:
#
#   attach    connect to the server
#   move      write, read and compare
#   load      write, read and compare until /tmp/stop exists; /tmp/passes counts how often all was compared
#   detach    disconnect and unload the modules
#
# A verb that fails names its command.

. "${BASH_SOURCE%/*}/../within.sh"

set -eEo pipefail
trap 'echo "line $LINENO: $BASH_COMMAND: status $?"' ERR
cd /tmp
# shellcheck disable=SC2034 # for those who read this file
verb=$1 variant=$2 address=$3 config=/sys/kernel/config
mib=4

# Most variants say nothing of the server.
used() { :; }

# verified FILE SEED [OPTION...]: random blocks, many at a time, which fio compares. Blocks of another seed are wrong.
verified() {
	fio --name=verified --filename="$1" --randseed="$2" --size=${mib}M --rw=randwrite --bsrange=4k-256k --direct=1 \
		--ioengine=libaio --iodepth=16 --verify=crc32c --verify_fatal=1 --verify_state_save=0 "${@:3}"
}

# passes FILE [OPTION...]
passes() {
	local pass
	rm -f /tmp/stop
	for ((pass = 0; ; pass++)); do
		echo $pass >/tmp/pass && mv /tmp/pass /tmp/passes		# who reads it finds a number
		[ ! -e /tmp/stop ] || return 0
		verified "$1" $((pass + 1)) "${@:2}"
	done
}

# write_and_compare DISK: in pieces, each of which is one command.
write_and_compare() {
	head -c ${mib}M /dev/urandom >data
	dd if=data of="$1" bs=256k iflag=fullblock oflag=direct
	for size in 1M 128k 4k; do
		dd if="$1" bs=$size count=${mib}M iflag=direct,count_bytes | cmp - data
	done
}
