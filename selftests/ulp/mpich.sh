#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# MPICH, which Debian builds for UCX, between two or four guests.

mpi=mpich
. "$(dirname "$0")/mpi/jobs.sh"

export UCX_TLS=rc,self

launch() {
	local hosts=$1 each=$2
	shift 2
	bounded mpiexec.mpich -launcher ssh -hosts "${hosts// /,}" -ppn "$each" -n "$ranks" "$@"
}

all_shapes
t 'nothing is left' nothing_is_left
end
