#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Open MPI between two or four guests, over UCX and over libfabric. By itself it takes UCX only for NICs whose driver it
# knows, and TCP otherwise, without a word: so it is told what to take, and the NICs' counters say what it took.

mpi=openmpi
. "$(dirname "$0")/mpi/jobs.sh"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

launch() {
	local hosts=$1 each=$2
	shift 2
	# A guest has one processor, and what waits leaves it to others.
	bounded mpirun.openmpi --host "${hosts// /:$each,}:$each" -np "$ranks" --bind-to none \
		--mca mpi_yield_when_idle 1 "${over[@]}" "$@"
}
over_ucx() {
	over=(--mca pml ucx --mca osc ucx -x "UCX_TLS=rc,self")
	programs=$every_program
}
# Without libfabric's cache of MRs, which does not notice that Open MPI's memory is freed and mapped anew: sums are
# wrong. Open MPI 5.0.7 makes no windows over verbs;ofi_rxm.
over_libfabric() {
	over=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' -x FI_MR_CACHE_MAX_COUNT=0)
	programs='messages collectives'
}

over_ucx
alone "$@"
for way in ucx libfabric; do
	over_$way
	all_shapes "$way, "
done
t 'nothing is left' nothing_is_left
end
