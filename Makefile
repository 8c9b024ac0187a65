# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One verb each; README.md says what they do.

all:
	tools/lab/lab build

run:
	tools/lab/lab demo

shell:
	tools/lab/lab shell

check:
	tools/check.sh

clean:
	rm -rf build/check build/skuad build/provider-test

.PHONY: all run shell check clean
