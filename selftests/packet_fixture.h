/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For a program of kselftest_harness.h: two raw packet QPs beside an RC connection that has to work on. */
#ifndef SKUA_SELFTEST_PACKET_FIXTURE_H
#define SKUA_SELFTEST_PACKET_FIXTURE_H

#include "packet.h"

FIXTURE(raw) {
	struct side s[2];
	struct packet_qp a, b;	/* of skua_0 and skua_1 */
	uint8_t mac[2][6];
};

FIXTURE_SETUP(raw)
{
	ASSERT_EQ(0, pair_open(self->s));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, read_mac(&self->s[i], self->mac[i]));
	ASSERT_EQ(0, packet_open(&self->a, &self->s[0]));
	ASSERT_EQ(0, packet_open(&self->b, &self->s[1]));
}

FIXTURE_TEARDOWN(raw)
{
	packet_close(&self->a);
	packet_close(&self->b);
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

#endif
