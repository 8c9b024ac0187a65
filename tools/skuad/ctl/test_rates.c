// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What happened between two answers, a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "ctl/rates.h"

static struct json_object *json(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	assert_non_null(o);
	return o;
}

/* @object, which is used up, is like @text. */
static void assert_json(struct json_object *object, const char *text)
{
	struct json_object *expected = json(text);

	if (!json_object_equal(object, expected))
		print_message("%s\n", json_object_to_json_string(object));
	assert_true(json_object_equal(object, expected));
	json_object_put(expected);
	json_object_put(object);
}

static void growth_is_told_by_the_second(void **state)
{
	struct json_object *before = json(
		"{'time_ns': 1000000000, 'counters': {'a': {'x': 5, 'y': 100}, 'b': {'x': 0}}}");
	struct json_object *after = json(
		"{'time_ns': 1500000000, 'counters': {'a': {'x': 5, 'y': 110}, 'b': {'x': 3}}}");

	(void)state;
	assert_json(rates_of(before, after), "{'a': {'x': 0, 'y': 20}, 'b': {'x': 6}}");
	json_object_put(before);
	json_object_put(after);
}

static void a_counter_that_went_back_began_anew(void **state)
{
	struct json_object *before = json("{'time_ns': 0, 'counters': {'a': {'x': 500}}}");
	struct json_object *after = json("{'time_ns': 2000000000, 'counters': {'a': {'x': 8}}}");

	(void)state;
	assert_json(rates_of(before, after), "{'a': {'x': 4}}");
	json_object_put(before);
	json_object_put(after);
}

static void no_time_is_no_rate(void **state)
{
	struct json_object *before = json("{'time_ns': 7, 'counters': {'a': {'x': 1}}}");

	(void)state;
	assert_json(rates_of(before, before), "{'a': {'x': 0}}");
	json_object_put(before);
}

#define QP(device, qpn, sq, rq, waiting) \
	"{'device': '" device "', 'qpn': " #qpn ", 'state': 'RTS', 'dest_qpn': 1, 'sq_psn': " #sq \
	", 'rq_psn': " #rq ", 'waiting': " #waiting ", 'retries': 0, 'rnr_retries': 0}"
#define ROW(device, qpn, s, r, w) \
	"{'device': '" device "', 'qpn': " #qpn ", 'state': 'RTS', 'dest_qpn': 1, 'waiting': " #w \
	", 'retries': 0, 'rnr_retries': 0, 'sent': " #s ", 'received': " #r "}"

/* PSNs wrap, QPs come and go, the same number is in use on two devices. */
static void the_busiest_qps_come_first(void **state)
{
	struct json_object *t0 = json("{'time_ns': 0}"), *t1 = json("{'time_ns': 1000000000}");
	struct json_object *before = json("{'qps': [" QP("a", 1, 0, 0, 0) "," QP("a", 2, 5, 5, 0) ","
					  QP("a", 3, 16777210, 9, 0) "," QP("b", 1, 50, 60, 0) ","
					  QP("b", 4, 7, 7, 2) ", {'device': 'b', 'qpn': 9}]}");
	struct json_object *after = json("{'qps': [" QP("a", 1, 1, 1, 0) "," QP("a", 3, 4, 9, 0) ","
					 QP("a", 5, 99, 99, 9) "," QP("b", 1, 150, 60, 0) ","
					 QP("b", 4, 7, 7, 2) ", {'device': 'b', 'qpn': 9}]}");

	(void)state;
	assert_json(rates_qps(t0, t1, before, after, 9),
		    "[" ROW("b", 1, 100, 0, 0) "," ROW("a", 3, 10, 0, 0) "," ROW("a", 1, 1, 1, 0) ","
		    ROW("b", 4, 0, 0, 2) "]");
	assert_json(rates_qps(t0, t1, before, after, 1), "[" ROW("b", 1, 100, 0, 0) "]");
	assert_json(rates_qps(t0, t1, after, before, 0), "[]");
	json_object_put(t0);
	json_object_put(t1);
	json_object_put(before);
	json_object_put(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(growth_is_told_by_the_second),
		cmocka_unit_test(a_counter_that_went_back_began_anew),
		cmocka_unit_test(no_time_is_no_rate),
		cmocka_unit_test(the_busiest_qps_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
