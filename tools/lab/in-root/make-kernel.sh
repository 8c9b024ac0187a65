#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What a guest boots, of one kernel. Runs in the root.
#
# usage: make-kernel.sh IMAGE TREE OUT
#
# IMAGE is a bzImage or a vmlinux; TREE holds lib/modules/RELEASE or usr/lib/modules/RELEASE, or is
# - for a kernel without modules. OUT gets:
#   vmlinux         uncompressed, for PVH boot, 4 s faster than a bzImage under TCG; or the bzImage
#                   as it is where we do not know its compression, or PVH does not work
#   initramfs       busybox and the modules that reach the root file system; each run adds the
#                   rest, its /init first (payload.py)
#   modules.erofs   usr/lib/modules, laid over the root image
#   release         what uname -r will say

set -euo pipefail

image=$1 tree=$2 out=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

is_elf() {
	head -c 4 "$1" | grep -qa ELF
}

# The kernel proper: where in the bzImage the compressed vmlinux begins is told by its magic.
unpack() {
	local magic=$1 at
	shift
	for at in $(LC_ALL=C grep -abo -P "$magic" "$image" | cut -d: -f1); do
		# The compressed stream has a tail that the tool complains about.
		tail -c "+$((at + 1))" "$image" | "$@" >"$work/vmlinux" 2>/dev/null || :
		is_elf "$work/vmlinux" && return
	done
	return 1
}
if is_elf "$image"; then
	cp "$image" "$work/vmlinux"
else
	unpack '\x28\xb5\x2f\xfd' zstd -dcq || unpack '\xfd7zXZ\x00' xz -dcq ||
		unpack '\x1f\x8b\x08' gzip -dcq || cp "$image" "$work/vmlinux"
fi
# By PVH a kernel with KASAN falls over its own shadow, before it has one.
if grep -qa 'KernelAddressSanitizer initialized' "$work/vmlinux"; then
	cp "$image" "$work/vmlinux"
fi
mv "$work/vmlinux" "$out/vmlinux"

# Modules: those for hardware that no guest has stay out, the others lie uncompressed, since
# a guest without KVM takes long to decompress.
release=
mkdir -p "$work/image/usr/lib/modules" "$work/initramfs/mods"
if [ "$tree" != - ]; then
	[ -d "$tree/usr/lib/modules" ] && from=$tree/usr/lib/modules || from=$tree/lib/modules
	release=$(ls "$from" | head -n 1)
	cp -r "$from/$release" "$work/image/usr/lib/modules/"
	to=$work/image/usr/lib/modules/$release
	rm -rf "$to"/{build,source,vmlinuz} "$to"/kernel/sound \
		"$to"/kernel/drivers/{gpu,media,staging,iio,hid,input,usb,bluetooth,platform} \
		"$to"/kernel/drivers/net/wireless
	find "$to" -name '*.ko.xz' -print0 | xargs -0 -r -P 2 -n 100 xz -d
	find "$to" -name '*.ko.zst' -print0 | xargs -0 -r -P 2 -n 100 zstd -dq --rm
	depmod -b "$work/image/usr" "$release"
	# In the order of their needs, each once.
	for module in virtio_pci virtio_blk erofs overlay; do
		modprobe -d "$work/image/usr" -S "$release" -D "$module" 2>/dev/null || :
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' >"$work/order"
	while read -r module; do
		cp "$module" "$work/initramfs/mods/"
		echo "${module##*/}" >>"$work/initramfs/mods/order"
	done <"$work/order"
fi
echo "$release" >"$out/release"
rm -f "$out/modules.erofs"
mkfs.erofs --quiet -U clear -T 0 "$out/modules.erofs" "$work/image" >/dev/null

mkdir -p "$work/initramfs"/{bin,proc,sys,dev,lower,modules,rw,new}
cp /usr/bin/busybox "$work/initramfs/bin/"
for name in sh mount mkdir cp insmod switch_root; do
	ln -s busybox "$work/initramfs/bin/$name"
done
(cd "$work/initramfs" && find . | cpio -o -H newc --quiet -R 0:0) >"$out/initramfs"
