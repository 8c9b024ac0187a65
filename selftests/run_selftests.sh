#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# All tests of this directory in a guest of the lab: TAP from each, and at the end "N passed, N failed, N skipped".
# With arguments, only those. Only run if they are named are test_limits, test_pagelists, test_crowd, test_pressure,
# test_inject.sh, test_devlink.sh, test_death.sh, test_survival.sh, test_power.sh, test_release, test_persist,
# test_cm.sh, test_loss.sh, test_hostile.sh, test_iommu.sh, test_bonding.sh, test_failures, test_middleware.sh,
# test_kernel_failures.sh, test_probe_failures.sh, test_probe_deeper.sh, test_buffers and test_leaks.sh: they want more
# time, a guest of 5 GiB or of little memory, a third NIC, a device that fails or is persistent, an IOMMU, Linux 7.2,
# or the debug kernel.
# Those with raw packets come after test_netdev.sh, which compares the device's counts of frames with those of the
# network stack.
#
# usage: run_selftests.sh [TEST...]

cd "$(dirname "$0")" || exit 1
[ $# -gt 0 ] ||
	set -- test_verbs test_consumers test_bad_objects test_bad_memory test_bad_qps test_bad_posting \
		test_bad_work test_bad_commands test_bad_handles test_rc test_ud test_uc test_srq test_tags test_xrc test_cq \
		test_mw test_dm test_rereg test_flush test_odp test_dmabuf test_mcast test_events test_threads test_fork \
		test_teardown test_netdev.sh test_counters.sh test_cgroup.sh test_netns.sh test_raw test_rss test_strip test_tso \
		test_rate test_import test_domains test_capabilities test_programs.sh test_kernel.sh test_xrc_kernel \
		test_device.sh
passed=0 failed=0 skipped=0

for test; do
	echo "# $test"
	# Programs run in a namespace, as users' do; scripts choose for themselves.
	case $test in
	*.sh) run=(bash "./$test") ;;
	*) run=(left "./$test") ;;
	esac
	began=$SECONDS
	timeout "${SKUA_TEST_TIMEOUT:-420}" "${run[@]}" | tee /tmp/tap
	status=${PIPESTATUS[0]}
	echo "# $test: $((SECONDS - began)) s"
	ok=$(grep -c '^ok ' /tmp/tap)
	skip=$(grep -c '^ok .*# SKIP' /tmp/tap)
	not_ok=$(grep -c '^not ok ' /tmp/tap)
	# The plan says how many there should have been, and there is something to test.
	plan=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' /tmp/tap)
	if [ "$((ok + not_ok))" != "${plan:-none}" ] || [ "$plan" = 0 ] || { [ "$status" != 0 ] && [ "$not_ok" = 0 ]; }; then
		echo "# $test ended with status $status after $((ok + not_ok)) of ${plan:-?} tests"
		not_ok=$((not_ok + 1))
	fi
	passed=$((passed + ok - skip)) failed=$((failed + not_ok)) skipped=$((skipped + skip))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
