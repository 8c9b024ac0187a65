#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The rdma controller of cgroups limits the contexts (hca_handle) and the other objects (hca_object) of a group of
# programs, for each device. Leaves the NICs as the lab set them up.

. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/nics.sh"

group=/sys/fs/cgroup/skua_test

# in_group DEVICE KIND: a program in the group makes objects until it is refused, but no more than 20. It prints how many
# it has, and what the group is charged for. With the kind `each` it makes one of each kind, and keeps them.
in_group() {
	bash -c 'echo $$ >'"$group"'/cgroup.procs && exec python3 - "$@"' sh "$@" <<-'END'
		import errno, signal, sys
		from pyverbs import enums
		from pyverbs.cq import CQ
		from pyverbs.device import Context
		from pyverbs.mr import MR
		from pyverbs.pd import PD
		from pyverbs.pyverbs_error import PyverbsRDMAError
		from pyverbs.qp import QP, QPCap, QPInitAttr
		from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

		made = []
		def many(make):
		    number = len(made)
		    try:
		        while len(made) - number < 20:
		            made.append(make())
		    except PyverbsRDMAError as error:
		        if error.error_code != errno.EAGAIN:
		            sys.exit('error %d' % error.error_code)
		    return len(made) - number

		def current():
		    with open('/sys/fs/cgroup/skua_test/rdma.current') as file:
		        return file.read().split()

		def context():
		    return Context(name=sys.argv[1])

		if sys.argv[2] == 'contexts':
		    print(many(context))
		else:
		    ctx = context()
		    pd = PD(ctx)
		    cq = CQ(ctx, 10)
		    init = QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(4, 4, 1, 1, 0))
		    kinds = {'pd': lambda: PD(ctx), 'cq': lambda: CQ(ctx, 10),
		             'mr': lambda: MR(pd, 4096, enums.IBV_ACCESS_LOCAL_WRITE), 'qp': lambda: QP(pd, init),
		             'srq': lambda: SRQ(pd, SrqInitAttr(SrqAttr(10, 1)))}
		    if sys.argv[2] == 'each':
		        made = [make() for make in kinds.values()]
		        signal.pause()
		    print(many(kinds[sys.argv[2]]))
		print(*current())
		for one in reversed(made):
		    one.close()
	END
}
limit() { echo "$*" >$group/rdma.max; }
# got NUMBER CURRENT DEVICE KIND
got() {
	local number=$1 current=$2 said
	shift 2
	said=$(in_group "$@")
	echo "$said"
	[ "$(head -n 1 <<<"$said")" = "$number" ] && tail -n 1 <<<"$said" | grep -q "$current"
}
nothing_is_left() { ! grep 'hca_handle=[1-9]\|hca_object=[1-9]' $group/rdma.current; }

sets_up() { echo +rdma >/sys/fs/cgroup/cgroup.subtree_control && mkdir $group && grep -q skua_0 $group/rdma.max; }
contexts() {
	limit skua_0 hca_handle=3 && got 3 'skua_0 hca_handle=3' skua_0 contexts && got 20 skua_1 skua_1 contexts &&
		limit skua_0 hca_handle=5 && got 5 'skua_0 hca_handle=5' skua_0 contexts && nothing_is_left &&
		limit skua_0 hca_handle=max && got 20 skua_0 skua_0 contexts
}
# A PD and a CQ come before.
objects() {
	local kind
	limit skua_0 hca_object=9 || return
	for kind in pd cq mr qp srq; do
		got 7 'skua_0 hca_handle=1 hca_object=9' skua_0 $kind || return
	done
	nothing_is_left && limit skua_0 hca_object=max && got 20 skua_0 skua_0 pd
}
# What is charged when the device goes is given back, while the program lives. rdma.current cannot tell, because it lists
# only the devices that exist. But each charge holds its group: a group that was removed is dying until nothing is charged
# to it. So the program goes to another group, its charges stay, and the group is removed.
dying() { [ "$(awk '$1 == "nr_dying_descendants" { print $2 }' $group/cgroup.stat)" = "$1" ]; }
charged_until_reset() {
	local parent=$group pid=$1
	within 10 grep 'skua_0 hca_handle=1 hca_object=7' "$parent/inner/rdma.current" &&
		echo "$pid" >/sys/fs/cgroup/cgroup.procs && rmdir "$parent/inner" && sleep 1 && dying 1 &&
		grep 'skua_0 hca_handle=1 hca_object=7' "$parent/rdma.current" &&
		echo 1 >"/sys/bus/pci/devices/$device/reset" && within 10 there && within 10 dying 0 && kill -0 "$pid"
}
device_goes() {
	local pid status
	echo +rdma >$group/cgroup.subtree_control && mkdir $group/inner || return
	group=$group/inner in_group skua_0 each &
	within 10 eval "pid=\$(grep . $group/inner/cgroup.procs)"
	charged_until_reset "$pid"
	status=$?
	kill "$pid"
	wait $!
	rmdir $group/inner 2>/dev/null
	echo -rdma >$group/cgroup.subtree_control && nothing_is_left && works_in 10 && return $status
}
nonsense() {
	! limit skua_9 hca_handle=1 && ! limit skua_0 hca_handle=-1 && ! limit skua_0 hca_nonsense=1
}
ends() { rmdir $group && echo -rdma >/sys/fs/cgroup/cgroup.subtree_control && works; }

t 'a group' sets_up
t 'contexts are limited, for each device' contexts
t 'objects of each kind are limited' objects
t 'the device goes' device_goes
t 'limits that are refused' nonsense
t 'the group ends' ends
end
