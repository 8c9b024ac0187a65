# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For faults of stock consumers, of which a debug kernel would tell.

# warn_of_dma 0|1: whether it warns of DMA memory that is used in a wrong way (CONFIG_DMA_API_DEBUG).
warn_of_dma() {
	local dma=/sys/kernel/debug/dma-api
	[ ! -e $dma ] || { echo "$1" >$dma/num_errors && echo "$1" >$dma/all_errors; }
}

# warn_of_hangs_after SECONDS: of tasks that wait, and of work that waits for other work.
warn_of_hangs_after() {
	local thresh=/sys/module/workqueue/parameters/watchdog_thresh
	[ ! -e $thresh ] || echo "$1" >$thresh
	sysctl -eq kernel.hung_task_timeout_secs="$1"
}
