#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Open MPI between two or four guests, over UCX. By itself it takes UCX only for NICs whose driver it knows, and TCP
# otherwise, without a word: so it is told what to take, and the NICs' counters say what it took.

. "$(dirname "$0")/mpi/jobs.sh"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

launch() {
	local hosts=$1 each=$2
	shift 2
	# A guest has one processor, and what waits leaves it to others. RC takes UD, too, to connect.
	bounded mpirun.openmpi --host "${hosts// /:$each,}:$each" -np "$ranks" --mca mpi_yield_when_idle 1 \
		--mca pml ucx --mca osc ucx -x UCX_TLS=rc,self "$@"
}

all_shapes 'ucx, '
end
