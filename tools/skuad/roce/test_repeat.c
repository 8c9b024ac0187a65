// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames of selective repeat as bytes, and packets that are held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device.h"
#include "roce/repeat.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct repeat_frame example(enum repeat_type type, uint16_t vlan)
{
	struct repeat_frame f = {
		.type = type, .answer = type == REPEAT_HELLO, .dest_qpn = 0x123456, .psn = 0xfffffe,
		.path = { .smac = { 2, 1 }, .dmac = { 2, 2 }, .sgid = { 3 }, .dgid = { 4 },
			  .vlan = vlan, .sl = 5 },
	};

	f.held[0] = 0x05;
	f.held[sizeof(f.held) - 1] = 0x80;
	return f;
}

static void frames_say_what_was_meant(void **state)
{
	static const uint16_t vlans[] = { SKUA_VLAN_NONE, 7 };
	uint8_t buf[REPEAT_FRAME + 64] = { 0 };

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(vlans); v++) {
		struct repeat_frame hello = example(REPEAT_HELLO, vlans[v]), out;
		struct repeat_frame missing = example(REPEAT_MISSING, vlans[v]);
		size_t len = repeat_build(buf, &hello);

		assert_int_equal(len, 14 + (v ? 4 : 0) + 12);
		assert_true(repeat_is_frame(buf, len));
		/* Ethernet's padding is no part of it. */
		assert_true(repeat_parse(&out, buf, sizeof(buf)));
		assert_int_equal(out.type, REPEAT_HELLO);
		assert_true(out.answer);
		assert_int_equal(out.path.vlan, vlans[v]);
		assert_memory_equal(out.path.smac, hello.path.smac, 6);
		len = repeat_build(buf, &missing);
		assert_int_equal(len, 14 + (v ? 4 : 0) + 116);
		assert_true(len <= REPEAT_FRAME);
		assert_true(repeat_parse(&out, buf, len));
		assert_int_equal(out.dest_qpn, 0x123456);
		assert_int_equal(out.psn, 0xfffffe);
		assert_memory_equal(out.path.sgid, missing.path.sgid, 16);
		assert_memory_equal(out.path.dgid, missing.path.dgid, 16);
		assert_memory_equal(out.held, missing.held, sizeof(out.held));
		assert_true(repeat_holds(&out, 0xffffff));
		assert_false(repeat_holds(&out, 0));
		assert_true(repeat_holds(&out, 1));
		assert_false(repeat_holds(&out, 0xfffffe));
		assert_true(repeat_holds(&out, psn_add(0xfffffe, REPEAT_WINDOW)));
		assert_false(repeat_holds(&out, psn_add(0xfffffe, REPEAT_WINDOW + 1)));
	}
}

static void bytes_are_as_the_manual_says(void **state)
{
	static const uint8_t want[] = {
		2, 2, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0x88, 0xb5, 'S', 'k', 'u', 'a', 1, 1, 1, 0,
	};
	struct repeat_frame f = example(REPEAT_HELLO, SKUA_VLAN_NONE);
	uint8_t buf[REPEAT_FRAME];

	(void)state;
	repeat_build(buf, &f);
	assert_memory_equal(buf, want, sizeof(want));
	f = example(REPEAT_MISSING, SKUA_VLAN_NONE);
	repeat_build(buf, &f);
	assert_int_equal(buf[19], 2);
	assert_int_equal(buf[22], 3);
	assert_int_equal(buf[38], 4);
	assert_memory_equal(buf + 54, ((uint8_t[]){ 0, 0x12, 0x34, 0x56, 0, 0xff, 0xff, 0xfe, 5 }), 9);
}

/* Cut at any length, or with any bit changed: never taken for another one. */
static void bad_frames_are_seen(void **state)
{
	struct repeat_frame f = example(REPEAT_MISSING, 7), out;
	uint8_t buf[REPEAT_FRAME];
	size_t len = repeat_build(buf, &f);

	(void)state;
	for (size_t l = 14; l < len; l++) {
		uint8_t *cut = malloc(l);

		memcpy(cut, buf, l);
		assert_false(repeat_parse(&out, cut, l));
		free(cut);
	}
	for (size_t bit = 0; bit < 8 * len; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(repeat_parse(&out, buf, len));
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_true(repeat_parse(&out, buf, len));
	/* Somebody else's experiment. */
	buf[18] ^= 1;
	assert_false(repeat_is_frame(buf, len));
}

/* The CRC of these frames is right. */
static void other_versions_and_types_are_not_known(void **state)
{
	struct repeat_frame hello = example(REPEAT_HELLO, SKUA_VLAN_NONE), out;
	uint8_t buf[REPEAT_FRAME];
	size_t len = repeat_build(buf, &hello);

	(void)state;
	for (size_t at = 18; at < 20; at++) {
		buf[at] = 3;
		repeat_seal(buf, len);
		assert_true(repeat_is_frame(buf, len));
		assert_false(repeat_parse(&out, buf, len));
		buf[at] = 1;
	}
	repeat_seal(buf, len);
	assert_true(repeat_parse(&out, buf, len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "REP-1: frames_say_what_was_meant", frames_say_what_was_meant, NULL, NULL, NULL },
		{ "REP-1: bytes_are_as_the_manual_says", bytes_are_as_the_manual_says, NULL, NULL, NULL },
		{ "REP-1 REP-2: bad_frames_are_seen", bad_frames_are_seen, NULL, NULL, NULL },
		{ "REP-2: other_versions_and_types_are_not_known", other_versions_and_types_are_not_known, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
