#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# drop-in.sh: adds once, copies what changed, touches nothing else, refuses strange trees.

set -eu
cd "$(dirname "$0")"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

fail() {
	echo "FAIL: drop-in: $*"
	exit 1
}

mkdir -p "$tree/libibverbs" "$tree/kernel-headers/rdma"
../drop-in.sh "$tree" 2>/dev/null && fail "took an empty tree"
: >"$tree/libibverbs/driver.h"
printf '%s\n' 'other' >"$tree/CMakeLists.txt"
../drop-in.sh "$tree" 2>/dev/null && fail "took a tree without providers"

printf '%s\n' 'add_subdirectory(providers/qedr)' 'endif()' >"$tree/CMakeLists.txt"
printf '%s\n' 'a(' '  rdma/siw-abi.h' ')' 'b(' '  rdma/siw-abi.h' ')' \
	>"$tree/kernel-headers/CMakeLists.txt"
../drop-in.sh "$tree"
before=$(cd "$tree" && find . -type f -exec stat -c '%n %Y %Z %s' {} + | sort)
[ "$(grep -c providers/skua "$tree/CMakeLists.txt")" = 1 ] || fail "providers/skua not once"
[ "$(grep -c skua-abi "$tree/kernel-headers/CMakeLists.txt")" = 2 ] || fail "skua-abi not twice"
for f in providers/skua/skua.c providers/skua/include/skua/wqe.h kernel-headers/rdma/skua-abi.h; do
	[ -f "$tree/$f" ] || fail "no $f"
done

sleep 1.1
../drop-in.sh "$tree"
after=$(cd "$tree" && find . -type f -exec stat -c '%n %Y %Z %s' {} + | sort)
[ "$before" = "$after" ] || fail "a second run changed files"

echo old >"$tree/providers/skua/skua.c"
../drop-in.sh "$tree"
cmp -s ../skua.c "$tree/providers/skua/skua.c" || fail "a changed file was not copied"
echo "ok: drop-in"
