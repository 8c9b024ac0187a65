// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* CQ as a ring: phases, removing the CQEs of a QP that goes away, arming. */
#include "cmocka_all.h"
#include "fake.h"

#define SIZE	8

static struct skua_cq_ring ring;
static struct fake_cq dev;
static bool rung;			/* by the last arming */

static int setup(void **state)
{
	fake_cq_init(&dev, &ring, SIZE);
	return 0;
}

static int teardown(void **state)
{
	fake_cq_free(&ring);
	return 0;
}

static bool ready(void)
{
	const struct skua_cqe *cqe;

	return skua_cq_peek(&ring, &cqe);
}

static void write_cqe(uint32_t qpn, uint32_t cookie)
{
	fake_cq_write(&dev, (struct skua_cqe) {
		.qpn = htole32(qpn),
		.cookie = htole32(cookie),
		.flags = SKUA_CQE_WITH_IMM,
	});
}

/* Consume the next CQE, which is to be this one. */
static void expect_cqe(uint32_t qpn, uint32_t cookie)
{
	const struct skua_cqe *cqe;

	assert_true(skua_cq_peek(&ring, &cqe));
	assert_int_equal(le32toh(cqe->qpn), qpn);
	assert_int_equal(le32toh(cqe->cookie), cookie);
	assert_int_equal(cqe->flags & ~SKUA_CQE_PHASE, SKUA_CQE_WITH_IMM);
	skua_cq_consume(&ring);
}

static void expect_empty(void)
{
	assert_false(ready());
}

/* Pass over @n CQEs, so that what follows begins at another slot and phase. */
static void pass(uint32_t n)
{
	while (n--) {
		write_cqe(9, n);
		expect_cqe(9, n);
	}
}

static void test_phase_tells_new_from_old_in_every_pass(void **state)
{
	uint32_t i, batch;

	for (batch = 1; batch <= SIZE; batch++)
		for (i = 0; i < 5 * SIZE; i++) {
			uint32_t j;

			expect_empty();
			for (j = 0; j < batch; j++)
				write_cqe(1, j);
			for (j = 0; j < batch; j++)
				expect_cqe(1, j);
		}
	expect_empty();
}

static void test_a_consumed_cqe_is_the_devices_at_once(void **state)
{
	write_cqe(1, 0);
	write_cqe(1, 1);
	assert_int_equal(ring.dbr->ci, 0);
	skua_cq_consume(&ring);
	assert_int_equal(le32toh(ring.dbr->ci), 1);
	skua_cq_consume(&ring);
	assert_int_equal(le32toh(ring.dbr->ci), 2);
}

static uint32_t told;

/* Those of a QP go, and are told. */
static bool tell(const struct skua_cqe *cqe, const void *arg)
{
	const uint32_t *qpn = arg;

	if (le32toh(cqe->qpn) != *qpn)
		return false;
	told++;
	return true;
}

static const uint32_t qp_1 = 1, qp_2 = 2;

/*
 * Every mix of CQEs of two QPs, at every slot and in both phases: what is left keeps its
 * order, and the phase is right for these and for all that come later.
 */
static void test_remove_leaves_the_others_in_order(void **state)
{
	uint32_t at, n, mix, i;

	for (at = 0; at < 2 * SIZE; at++)
		for (n = 0; n <= SIZE; n++)
			for (mix = 0; mix < 1u << n; mix++) {
				uint32_t removed = __builtin_popcount(mix);

				setup(NULL);
				pass(at);
				for (i = 0; i < n; i++)
					write_cqe(mix >> i & 1 ? 2 : 1, i);
				told = 0;
				skua_cq_remove(&ring, tell, &qp_2);
				assert_int_equal(told, removed);
				assert_int_equal(le32toh(ring.dbr->ci), at + removed);
				for (i = 0; i < n; i++)
					if (!(mix >> i & 1))
						expect_cqe(1, i);
				expect_empty();
				pass(3 * SIZE);
				expect_empty();
				teardown(NULL);
			}
	setup(NULL);
}

/* The kernel's part: the device takes another ring, and says from which index on. */
static uint32_t switch_rings(struct skua_cq_ring *to)
{
	dev.cqes = to->cqes;
	dev.size = to->size;
	return dev.pi;
}

/*
 * From every index and between all sizes, with CQEs that were there before and some that come while the ring is
 * exchanged.
 */
static void test_another_ring_has_them_all(void **state)
{
	static const uint32_t sizes[] = { 1, 2, SIZE, 2 * SIZE, 4 * SIZE };
	uint32_t at, n, i, later, index;

	for (i = 0; i < 5; i++)
		for (at = 0; at < 8 * SIZE + 1; at++)
			for (n = 0; n <= SIZE && n <= sizes[i]; n++) {
				struct skua_cq_ring to = {
					.cqes = fake_zalloc(64, sizes[i] * sizeof(struct skua_cqe)),
				};
				void *old;

				teardown(NULL);
				setup(NULL);
				old = ring.cqes;
				pass(at);
				for (later = 0; later < n; later++)
					write_cqe(1, later);
				skua_cq_set_size(&to, sizes[i]);
				skua_cq_prepare(&ring, &to);
				index = switch_rings(&to);
				for (later = n; later < sizes[i]; later++)
					write_cqe(1, later);
				skua_cq_move(&ring, &to, index);
				for (later = 0; later < sizes[i]; later++)
					expect_cqe(1, later);
				expect_empty();
				pass(3 * sizes[i]);
				expect_empty();
				free(old);
			}
}

static void test_remove_makes_room_for_the_device(void **state)
{
	uint32_t i;

	for (i = 0; i < SIZE; i++)
		write_cqe(i % 2, i);
	skua_cq_remove(&ring, tell, &qp_1);
	for (i = 0; i < SIZE / 2; i++)
		write_cqe(3, 100 + i);	/* asserts that there is room */
	for (i = 0; i < SIZE; i += 2)
		expect_cqe(0, i);
	for (i = 0; i < SIZE / 2; i++)
		expect_cqe(3, 100 + i);
	expect_empty();
}

static void test_remove_of_a_stranger_changes_nothing(void **state)
{
	write_cqe(1, 0);
	write_cqe(1, 1);
	skua_cq_remove(&ring, tell, &qp_2);
	assert_int_equal(ring.dbr->ci, 0);
	expect_cqe(1, 0);
	expect_cqe(1, 1);
	expect_empty();
}

/* Arm, ring if so told, and say whether the device raises an event at once. */
static bool arm(bool solicited)
{
	uint32_t ci;

	rung = skua_cq_arm(&ring, solicited, true, &ci);
	return rung && fake_cq_evaluate(&dev);
}

static bool write_and_evaluate(uint8_t status, uint8_t flags)
{
	fake_cq_write(&dev, (struct skua_cqe) { .status = status, .flags = flags });
	return fake_cq_evaluate(&dev);
}

static void consume(void)
{
	assert_true(ready());
	skua_cq_consume(&ring);
}

static void test_unarmed_has_no_event(void **state)
{
	assert_false(write_and_evaluate(0, 0));
}

static void test_armed_has_one_event(void **state)
{
	assert_false(arm(false));
	assert_false(rung);
	assert_true(write_and_evaluate(0, 0));
	assert_false(write_and_evaluate(0, 0));
}

static void test_arming_counts_from_one(void **state)
{
	arm(false);
	assert_int_equal(SKUA_CQ_ARM_GET_SEQ(le64toh(ring.dbr->arm)), 1);
	arm(false);
	assert_int_equal(SKUA_CQ_ARM_GET_SEQ(le64toh(ring.dbr->arm)), 2);
	ring.arm_seq = SKUA_CQ_ARM_SEQ_MASK;
	arm(false);
	assert_int_equal(SKUA_CQ_ARM_GET_SEQ(le64toh(ring.dbr->arm)), 0);
	assert_int_equal(SKUA_CQ_ARM_GET_TYPE(le64toh(ring.dbr->arm)), SKUA_CQ_ARM_NEXT);
}

static void test_arming_over_a_cqe_rings_and_fires(void **state)
{
	write_and_evaluate(0, 0);
	assert_true(arm(false));
}

/* Of a program that arms first, and polls then. */
static void test_what_gave_an_event_gives_no_other(void **state)
{
	arm(false);
	for (int i = 0; i < 3; i++) {
		assert_true(write_and_evaluate(0, 0));
		skua_cq_disarm(&ring);
		assert_false(arm(false));
		assert_true(rung);
		consume();
	}
}

static void test_arming_after_polling_is_quiet(void **state)
{
	write_and_evaluate(0, 0);
	consume();
	assert_false(arm(false));
	assert_false(rung);
	assert_true(write_and_evaluate(0, 0));
}

static void test_solicited_waits_for_solicited_or_error(void **state)
{
	arm(true);
	assert_false(write_and_evaluate(0, 0));
	assert_true(write_and_evaluate(0, SKUA_CQE_SOLICITED));
	skua_cq_disarm(&ring);
	while (ready())
		consume();
	assert_false(arm(true));
	assert_true(write_and_evaluate(SKUA_CQE_WR_FLUSH_ERR, 0));
}

static void test_solicited_after_next_stays_next(void **state)
{
	arm(false);
	arm(true);
	assert_true(write_and_evaluate(0, 0));
}

static void test_next_after_solicited_is_next(void **state)
{
	arm(true);
	arm(false);
	assert_true(write_and_evaluate(0, 0));
}

static void test_event_taken_allows_solicited_again(void **state)
{
	arm(false);
	assert_true(write_and_evaluate(0, 0));
	skua_cq_disarm(&ring);
	consume();
	assert_false(arm(true));
	assert_false(write_and_evaluate(0, 0));
}

static void test_so_it_does_when_the_cqe_was_polled_before(void **state)
{
	arm(false);
	assert_true(write_and_evaluate(0, 0));
	consume();
	/* And its slot has been used again. */
	for (uint32_t i = 0; i < ring.size; i++) {
		write_and_evaluate(0, 0);
		consume();
	}
	skua_cq_disarm(&ring);
	assert_false(arm(true));
	assert_false(write_and_evaluate(0, 0));
}

/* The event waits in its channel, while the program polls the CQE and arms again. */
static void test_event_of_an_earlier_arming_weakens_nothing(void **state)
{
	arm(true);
	assert_true(write_and_evaluate(0, SKUA_CQE_SOLICITED));
	consume();
	assert_false(arm(false));
	skua_cq_disarm(&ring);
	assert_false(arm(true));
	assert_true(write_and_evaluate(0, 0));
}

static void test_without_event_index_every_arming_rings(void **state)
{
	uint32_t ci;

	pass(3);
	assert_true(skua_cq_arm(&ring, false, false, &ci));
	assert_int_equal(ci, 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_phase_tells_new_from_old_in_every_pass),
		T(test_a_consumed_cqe_is_the_devices_at_once),
		cmocka_unit_test_teardown(test_remove_leaves_the_others_in_order, teardown),
		T(test_another_ring_has_them_all),
		T(test_remove_makes_room_for_the_device),
		T(test_remove_of_a_stranger_changes_nothing),
		T(test_unarmed_has_no_event),
		T(test_armed_has_one_event),
		T(test_arming_counts_from_one),
		T(test_arming_over_a_cqe_rings_and_fires),
		T(test_what_gave_an_event_gives_no_other),
		T(test_arming_after_polling_is_quiet),
		T(test_solicited_waits_for_solicited_or_error),
		T(test_solicited_after_next_stays_next),
		T(test_next_after_solicited_is_next),
		T(test_event_taken_allows_solicited_again),
		T(test_so_it_does_when_the_cqe_was_polled_before),
		T(test_event_of_an_earlier_arming_weakens_nothing),
		T(test_without_event_index_every_arming_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
