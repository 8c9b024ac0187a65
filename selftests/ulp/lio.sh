# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What the scripts of SCSI protocols share: the kernel's target (LIO) with a disk in memory, and the disk that appears
# at the initiator, which has no other. Needs ulp.sh.

# shellcheck disable=SC2154 # ulp.sh sets config and mib
target=$config/target
disk=/dev/sda

# shellcheck disable=SC2154
make_disk() {
	modprobe target_core_mod
	mkdir -p /etc/target "$target/core/rd_mcp_0/disk"
	echo rd_pages=$((mib * 256)) >"$target/core/rd_mcp_0/disk/control"
	echo 1 >"$target/core/rd_mcp_0/disk/enable"
}

# as_lun PORTAL-GROUP: the disk is its LUN 0.
as_lun() {
	mkdir "$1/lun/lun_0"
	ln -s "$target/core/rd_mcp_0/disk" "$1/lun/lun_0/disk"
}
no_lun() {
	rm "$1/lun/lun_0/disk"
	rmdir "$1/lun/lun_0"
}

remove_disk() {
	rmdir "$target/core/rd_mcp_0/disk" "$target/core/rd_mcp_0"
	# It has loaded those for other disks.
	modprobe -r target_core_iblock target_core_file target_core_pscsi target_core_user
	modprobe -r target_core_mod
}

# Some kernels have sd_mod built in.
unload_sd_mod() { ! grep -q '^sd_mod ' /proc/modules || modprobe -r sd_mod; }

move() {
	write_and_compare $disk
	verified $disk 0
}
load() { passes $disk; }
