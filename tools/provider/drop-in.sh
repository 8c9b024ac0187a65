#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Put libskua into an rdma-core source tree as providers/skua:
#
#	drop-in.sh TREE
#
# It copies the provider, the hardware interface and the kernel ABI, and adds them to the
# tree's lists. To be run again after a change here: what did not change is not touched, so
# that only what did is built anew. Then, in the tree's build directory, the target is
# skua-rdmavNN, where NN is the tree's IBVERBS_PABI_VERSION.

set -eu

die() {
	echo "drop-in.sh: $*" >&2
	exit 1
}

# Copy a file unless it is there and the same.
put() {
	cmp -s "$1" "$2" || cp "$1" "$2"
}

# Add the line $3 behind each line of file $1 that is $2, unless it is in there.
add_behind() {
	grep -qxF "$3" "$1" && return
	grep -qxF "$2" "$1" || die "$1 has no line '$2': not an rdma-core that we know"
	awk -v at="$2" -v line="$3" '{ print } $0 == at { print line }' "$1" >"$1.skua"
	cat "$1.skua" >"$1"
	rm "$1.skua"
}

[ $# -eq 1 ] || die "usage: drop-in.sh TREE"
tree=$1
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
[ -f "$tree/libibverbs/driver.h" ] || die "$tree is not an rdma-core source tree"

mkdir -p "$tree/providers/skua/include/skua"
for f in "$here"/*.c "$here"/*.h "$here"/CMakeLists.txt; do
	put "$f" "$tree/providers/skua/${f##*/}"
done
for f in "$repo"/include/skua/*.h; do
	put "$f" "$tree/providers/skua/include/skua/${f##*/}"
done
put "$repo/uapi/rdma/skua-abi.h" "$tree/kernel-headers/rdma/skua-abi.h"

add_behind "$tree/CMakeLists.txt" 'add_subdirectory(providers/qedr)' \
	'add_subdirectory(providers/skua)'
add_behind "$tree/kernel-headers/CMakeLists.txt" '  rdma/siw-abi.h' '  rdma/skua-abi.h'
