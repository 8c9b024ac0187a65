# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Waiting, for scripts that a guest runs.

# How many times as long something may take, because the kernel finds faults and is slow.
slowness=${SKUA_SLOWNESS:-1}

# within SECONDS COMMAND...: does it succeed in time?
within() {
	local end=$((SECONDS + $1 * slowness))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
