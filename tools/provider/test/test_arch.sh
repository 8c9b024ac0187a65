#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# DBP-1 DBR-3 ARM-1 ARM-2 ATM-1 CQ-2: what the provider is on machines other than the one that tests it:
# barriers that a device sees, atomics only where words are little endian, no 32-bit build.

set -eu
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# What this machine's headers lack for others.
mkdir "$out/gnu"
: >"$out/gnu/stubs.h"

fail() {
	echo "FAIL: arch: $*"
	exit 1
}

# arch.c as assembly, for the target $1; more arguments are flags.
build() {
	target=$1
	shift
	clang "--target=$target" -O2 -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror \
		-I.. -I../../../include -Ishim "-I$out" \
		-idirafter /usr/include -idirafter "/usr/include/$(uname -m)-linux-gnu" "$@" -S -o "$out/arch.s" arch.c \
		2>"$out/errors"
}

# Has the function $1 of the last build an instruction that matches $2?
has() {
	awk -v name="$1:" '$1 == name { on = 1 } /^\.Lfunc_end/ { on = 0 } on' "$out/arch.s" | grep -qE "$2"
}

built() {
	build "$@" || { cat "$out/errors"; fail "no build for $1"; }
}

built aarch64-linux-gnu -DHAS_ATOMICS=1
# Loads of a CQE before the store that gives it back. Only barriers of the outer domain are for devices.
has consume '^[[:space:]]*dmb[[:space:]]+osh(ld)?$' || fail "arm64: a CQE is given back before it is read"
has publish '^[[:space:]]*dmb[[:space:]]+osh$' || fail "arm64: no full barrier behind the index of an SQ"
has arm '^[[:space:]]*dmb[[:space:]]+osh$' || fail "arm64: no full barrier behind the arm word"

built x86_64-linux-gnu -DHAS_ATOMICS=1
has publish '^[[:space:]]*mfence' || fail "x86: no full barrier behind the index of an SQ"
has arm '^[[:space:]]*mfence' || fail "x86: no full barrier behind the arm word"
! has consume '[lm]fence' || fail "x86: a barrier that nobody needs"

built powerpc64-linux-gnu -DHAS_ATOMICS=0

for target in i386-linux-gnu x86_64-linux-gnux32 arm-linux-gnueabi; do
	! build $target || fail "a build for $target"
	grep -q 'libskua needs a 64-bit machine' "$out/errors" || fail "$target: no clear message"
done
echo "ok: arch"
