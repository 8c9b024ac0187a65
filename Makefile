# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# One verb each; README.md says what they do.

all:
	$(MAKE) -C tools/skuad all

check:
	tools/check.sh

clean:
	rm -rf build/check build/skuad build/provider-test

.PHONY: all check clean
