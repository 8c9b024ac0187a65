#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The kernel that finds faults: built from a linux-source package, with the debugging and the
# users of RDMA of debug.config. Runs in the root.
#
# usage: make-debug-kernel.sh PACKAGE IMAGE OUT CONFIG...
#
# IMAGE is what a build of the kernel leaves to be booted. OUT gets image, lib/modules/RELEASE, and build/, the tree to build modules against. A build
# that was interrupted goes on where it was.

set -euo pipefail

package=$1 image=$2 out=$3
shift 3
tree=$out/build
mkdir -p "$out"
if [ ! -e "$tree/Makefile" ]; then
	rm -rf "$tree.new"
	mkdir "$tree.new"
	name=$(basename "$package")
	dpkg-deb --fsys-tarfile "$package" | tar -xO "./usr/src/${name%%_*}.tar.xz" |
		xz -dcT0 | tar -x -C "$tree.new" --strip-components=1
	mv "$tree.new" "$tree"
fi
cd "$tree"
# Two MRs over the same memory are no fault where DMA is coherent, as later kernels know. Their thousands of
# warnings, by a serial line, are most of what a test takes.
sed -i 's/rc == -EEXIST && !(attrs/rc == -EEXIST \&\& dma_get_cache_alignment() > 1 \&\& !(attrs/' kernel/dma/debug.c
grep -q 'dma_get_cache_alignment() > 1' kernel/dma/debug.c
# A context that cannot be made (for want of memory) keeps its task: the kernel's loss, which is not looked for.
lost=drivers/infiniband/core/uverbs_std_types_device.c
grep -q rdma_restrack_put $lost ||
	sed -i 's/^\t\tkfree(attrs->context);/\t\trdma_restrack_put(\&attrs->context->res);\n&/' $lost
grep -q rdma_restrack_put $lost
make -s defconfig kvm_guest.config
scripts/kconfig/merge_config.sh -m -Q .config "$@" >/dev/null
make -s olddefconfig
# What the configuration system refused would be missed only by the fault not found.
missed=$(cat "$@" | grep -v '^#' | grep -vxFf .config || :)
[ -z "$missed" ] || { echo "make-debug-kernel: not to be had: $missed" >&2; exit 1; }
make -s -j"$(nproc)" LOCALVERSION=-skua-debug "${image##*/}" modules
cp "$image" "$out/image"
rm -rf "${out:?}/lib"
make -s LOCALVERSION=-skua-debug INSTALL_MOD_PATH="$out" modules_install
