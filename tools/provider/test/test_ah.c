// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address handles: what a WQE is told of where a datagram goes to. */
#include "kernel.h"
#include "objects.h"

static void test_ah(void **state)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .sl = 3,
		.grh = { .dgid.raw = "where it goes to", .flow_label = 0xfffabcde, .sgid_index = 2,
			 .hop_limit = 64, .traffic_class = 0x68 },
	};
	const struct skua_av av = {
		.dgid = "where it goes to", .dmac = "\2mac05", .sgid_index = 2, .hop_limit = 64,
		.traffic_class = 0x68, .sl = 3, .flow_label = htole32(0xabcde),
	};
	struct ibv_ah *ah = skua_create_ah(&pd.ibv_pd, &attr);

	assert_non_null(ah);
	assert_memory_equal(&to_skua_ah(ah)->av, &av, sizeof(av));
	answer = EBUSY;
	assert_int_equal(skua_destroy_ah(ah), EBUSY);
	answer = 0;
	assert_int_equal(skua_destroy_ah(ah), 0);
	answer = ENETUNREACH;
	assert_null(skua_create_ah(&pd.ibv_pd, &attr));
	assert_int_equal(errno, ENETUNREACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ah),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
