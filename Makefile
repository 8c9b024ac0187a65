# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One verb each; README.md says what they do. The lab reads SKUA_BUILD, too.

BUILD	:= $(abspath $(or $(SKUA_BUILD),build))

all:
	tools/lab/lab build

run:
	tools/lab/lab demo

shell:
	tools/lab/lab shell

# ALL=1: with the guests that are left out when skuad alone changed.
check:
	tools/lab/lab check $(if $(ALL),--all)

check-full:
	tools/lab/lab check --full

check-debug:
	tools/lab/lab check --debug

# Do the tests find small faults that are put into the sources?
teeth:
	tools/lab/lab check teeth driver-mutants-1 driver-mutants-2 driver-mutants-3 driver-mutants-4

# Each fuzzer for so long, one after the other.
SECONDS	?= 60
fuzz:
	tools/lab/lab exec -- make -s -j4 --no-print-directory -C tools/skuad \
		OUT=$(BUILD)/skuad-check SECONDS=$(SECONDS) fuzz

# Manual pages, into build/man.
man:
	tools/lab/lab check man

bench:
	tools/bench/bench

# All that was built, but not what was fetched and not the root. The shell reads SKUA_BUILD, in quotes: make would take
# a path with a blank for two, and rm would remove directories that are not ours.
clean:
	rm -rf -- $(addprefix "$${SKUA_BUILD:-build}"/,bench check images driver-mutants modules mutants provider* \
		rdma-core* selftests* skuad* traffic)

.PHONY: all run shell check check-full check-debug teeth fuzz man bench clean
