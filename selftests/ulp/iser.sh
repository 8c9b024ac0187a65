#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# iSCSI over RDMA (iSER) between two guests: the stock kernel's target and initiator, and open-iscsi. Variants:
#
#   plain          the initiator registers memory for each command
#   unregistered   one segment needs no registration
#   death          the initiator gives up after seconds
. "$(dirname "$0")/ulp.sh"
. "$(dirname "$0")/lio.sh"
. "$(dirname "$0")/debug.sh"

name=iqn.2026-01.org.skua:disk
group=$target/iscsi/$name/tpgt_1
node=(iscsiadm -m node -T "$name" -p "$address:3260" -I iser)

# ib_isert syncs descriptors that it has not mapped yet.
serve() {
	warn_of_dma 0
	make_disk
	modprobe -a iscsi_target_mod ib_isert
	mkdir -p "$group"
	as_lun "$group"
	echo 0 >"$group/attrib/authentication"
	echo 1 >"$group/attrib/generate_node_acls"
	echo 0 >"$group/attrib/demo_mode_write_protect"
	# A listener at an address would go with its NIC.
	mkdir "$group/np/0.0.0.0:3260"
	echo 1 >"$group/np/0.0.0.0:3260/iser"
	echo 1 >"$group/enable"
}

stop() {
	echo 0 >"$group/enable"
	rmdir "$group/np/0.0.0.0:3260"
	no_lun "$group"
	rmdir "$group" "$target/iscsi/$name" "$target/iscsi"
	modprobe -r ib_isert
	modprobe -r iscsi_target_mod
	remove_disk
	warn_of_dma 1
}

attach() {
	local always=Y patience=600
	[ "$variant" != unregistered ] || always=N
	[ "$variant" != death ] || patience=5
	modprobe sd_mod
	modprobe ib_iser always_register=$always
	mkdir -p /run/lock/iscsi
	echo InitiatorName=iqn.2026-01.org.skua:user >/etc/iscsi/initiatorname.iscsi
	iscsid
	"${node[@]}" -o new
	"${node[@]}" -o update -n node.session.timeo.replacement_timeout -v $patience
	"${node[@]}" --login
	within 20 test -b $disk
	iscsiadm -m session | grep '^iser:'
}

detach() {
	"${node[@]}" --logout
	within 20 test ! -e $disk
	"${node[@]}" -o delete
	iscsiadm -k 0
	modprobe -r ib_iser
	unload_sd_mod
}

"$verb"
