#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# NICs behind a virtual IOMMU (lab run --iommu), by the kernel's events `map` and `unmap`: the drivers map what a
# device reads and writes, as long as it may, and no longer. Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

tracing=/sys/kernel/tracing
group=/sys/bus/pci/devices/$device/iommu_group

translates() { cat "$group/type" && grep -q '^DMA' "$group/type"; }
frames() { left ping -q -c 20 -i 0.05 -s 8000 192.0.2.2; }

# Bytes that were mapped, less those that were unmapped, since the trace began.
mapped() {
	awk '/ map: IOMMU/ { n = 1 } / unmap: IOMMU/ { n = -1 } match($0, / size=[0-9]+/) {
		sum += n * substr($0, RSTART + 6, RLENGTH - 6) } END { printf "%d\n", sum }' $tracing/trace
}
trace() {
	mountpoint -q $tracing || mount -t tracefs tracefs $tracing || return
	echo 0 >$tracing/tracing_on && echo 16384 >$tracing/buffer_size_kb && echo >$tracing/trace &&
		echo 1 >$tracing/events/iommu/map/enable && echo 1 >$tracing/events/iommu/unmap/enable &&
		echo 1 >$tracing/tracing_on
}

# Frames come and go meanwhile, so that 64 MiB are told from some KiB.
regions() {
	trace || return
	cat >/tmp/regions.py <<-'END'
		import subprocess, sys
		from pyverbs.device import Context
		from pyverbs.enums import ibv_access_flags
		from pyverbs.mr import MR
		from pyverbs.pd import PD

		def mapped():
		    return int(subprocess.check_output(['bash', '-c', sys.argv[1]])) / 2**20

		pd = PD(Context(name='skua_0'))
		before = mapped()
		regions = [MR(pd, 1 << 20, ibv_access_flags.IBV_ACCESS_LOCAL_WRITE) for _ in range(64)]
		during = mapped()
		for region in regions:
		    region.close()
		after = mapped()
		print('MiB that are mapped, before, with and after 64 regions of 1 MiB:', before, during, after)
		sys.exit(not (64 <= during - before < 65 and abs(after - before) < 1))
	END
	# A namespace has a /sys of its own, without the trace.
	python3 /tmp/regions.py "tracing=$tracing; $(declare -f mapped); mapped"
}

# All NICs, since what one maps for frames depends on what the other sends.
nics=("$driver"/*:*)
each() {
	local nic
	for nic in "${nics[@]##*/}"; do
		echo "$nic" >"$driver/$1" || return
	done
}
bind() { each bind && dress && within 10 there; }
# What is in a socket's queue stays mapped until the network stack has freed it.
nothing_is_mapped() { [ "$(mapped)" = 0 ]; }
nothing_stays() {
	local during
	# If a step fails, the NICs are bound again for the tests that follow.
	each unbind && trace && bind && works_in 10 && frames && during=$(mapped) && each unbind || { bind; return 1; }
	echo "bytes that were mapped while the NICs were bound: $during"
	within 5 nothing_is_mapped
	local status=$?
	echo "bytes that stayed mapped without them: $(mapped)"
	bind && works_in 10 && [ "$during" -gt 1000000 ] && [ $status = 0 ]
}

t 'the IOMMU translates addresses of the NIC' translates
t 'traffic' works
t 'frames' frames
t 'a region is mapped while it is registered' regions
t 'NICs without their driver have nothing mapped' nothing_stays
end
