// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* SQ and RQ as rings: layout of WQEs, wrapping, room, publishing and the event index. */
#include "cmocka_all.h"
#include "fake.h"

#define BLOCKS	16

static struct skua_sq sq;
static uint8_t wqe_copy[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];
static const struct skua_wqe_ctrl *ctrl = (void *)wqe_copy;

static int setup(void **state)
{
	fake_sq_init(&sq, BLOCKS);
	return 0;
}

static int teardown(void **state)
{
	fake_sq_free(&sq);
	return 0;
}

/* Move all indices of an empty SQ to @index. */
static void sq_at(uint32_t index)
{
	sq.pi = index;
	sq.published = index;
	sq.wr_pi = sq.wr_limit = sq.wr_ci = index;
	sq.dbr->pi = htole32(index);
	sq.dbr->event = htole32(index);
}

static void build_write(uint64_t wr_id, uint32_t num_sge)
{
	struct skua_wqe wqe;
	uint32_t i;

	skua_wqe_begin(&sq, &wqe, wr_id, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED);
	skua_wqe_add_rdma(&wqe, 0x1122334455667788, 0xaabbccdd);
	for (i = 0; i < num_sge; i++)
		skua_wqe_add_sge(&sq, &wqe, 0x1000 * (i + 1), 100 + i, 7 + i);
	skua_wqe_end(&sq, &wqe, num_sge, 0);
}

static void check_write(uint32_t index, uint32_t num_sge)
{
	const struct skua_wqe_rdma *rdma = (void *)(ctrl + 1);
	const struct skua_sge *sge = (void *)(rdma + 1);
	uint32_t i;

	assert_int_equal(fake_sq_fetch(&sq, index, wqe_copy),
			 skua_wqe_blocks(32 + 16 * num_sge));
	assert_int_equal(ctrl->opcode, SKUA_WQE_WRITE);
	assert_int_equal(ctrl->flags, SKUA_WQE_SIGNALED);
	assert_int_equal(ctrl->num_sge, num_sge);
	assert_int_equal(le32toh(ctrl->cookie), index & (BLOCKS - 1));
	assert_int_equal(ctrl->length, 0);
	assert_int_equal(ctrl->inv_key, 0);
	assert_int_equal(le64toh(rdma->raddr), 0x1122334455667788);
	assert_int_equal(le32toh(rdma->rkey), 0xaabbccdd);
	assert_int_equal(rdma->flush, 0);
	for (i = 0; i < num_sge; i++) {
		assert_int_equal(le64toh(sge[i].addr), 0x1000 * (i + 1));
		assert_int_equal(le32toh(sge[i].length), 100 + i);
		assert_int_equal(le32toh(sge[i].lkey), 7 + i);
	}
}

static void test_write_of_each_sge_count_at_each_slot(void **state)
{
	uint32_t at, num_sge;

	for (at = 0; at < 2 * BLOCKS; at++)
		for (num_sge = 0; num_sge <= 30; num_sge++) {
			sq_at(at);
			memset(sq.buf, 0xee, BLOCKS * SKUA_WQE_BLOCK);
			build_write(at * 100 + num_sge, num_sge);
			check_write(at, num_sge);
			assert_int_equal(sq.pi - at, skua_wqe_blocks(32 + 16 * num_sge));
			assert_int_equal(sq.slots[at & (BLOCKS - 1)].wr_id, at * 100 + num_sge);
		}
}

static void test_wqe_touches_no_block_but_its_own(void **state)
{
	const uint8_t *buf = (void *)sq.buf;
	uint32_t i;

	sq_at(14);
	memset(sq.buf, 0xee, BLOCKS * SKUA_WQE_BLOCK);
	build_write(1, 14);	/* 256 bytes: blocks 14, 15, 0, 1 */
	for (i = 2 * SKUA_WQE_BLOCK; i < 14 * SKUA_WQE_BLOCK; i++)
		assert_int_equal(buf[i], 0xee);
}

/* Inline data of every length, in pieces, beginning at every slot. */
static void test_inline_data_wraps_at_any_byte(void **state)
{
	uint8_t data[512];
	uint32_t at, length, cut, i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + 1;
	for (at = 0; at < BLOCKS; at++)
		for (length = 0; length <= sizeof(data); length++) {
			struct skua_wqe wqe;
			char *place;

			sq_at(at + 3 * BLOCKS);
			memset(sq.buf, 0, BLOCKS * SKUA_WQE_BLOCK);
			cut = length / 3;
			skua_wqe_begin(&sq, &wqe, 0, SKUA_WQE_SEND, SKUA_WQE_INLINE);
			place = skua_sq_copy(&sq, wqe.next, data, cut);
			place = skua_sq_copy(&sq, place, data, 0);
			skua_sq_copy(&sq, place, data + cut, length - cut);
			wqe.size += length;
			skua_wqe_end(&sq, &wqe, 0, length);

			assert_int_equal(fake_sq_fetch(&sq, at, wqe_copy),
					 skua_wqe_blocks(16 + length));
			assert_int_equal(ctrl->num_sge, 0);
			assert_int_equal(le32toh(ctrl->length), length);
			assert_memory_equal(wqe_copy + 16, data, length);
		}
}

static uint32_t room(void)
{
	return sq.max_wr - (sq.wr_pi - sq.wr_ci);
}

/* A CQE of the WR that begins at @index was polled. */
static void retire(uint32_t index)
{
	skua_sq_retire(&sq, &sq.slots[index & (BLOCKS - 1)]);
}

/* A WR without a CQE of its own is done with the next that has one. */
static void test_room_is_what_was_retired(void **state)
{
	sq.max_wr = 3;
	assert_false(skua_sq_full(&sq));
	build_write(1, 2);
	assert_false(skua_sq_full(&sq));
	build_write(2, 30);
	assert_false(skua_sq_full(&sq));
	build_write(3, 0);
	assert_true(skua_sq_full(&sq));
	retire(1);
	assert_int_equal(room(), 2);
	retire(9);
	assert_int_equal(room(), 3);
}

static void test_room_across_the_end_of_32_bits(void **state)
{
	sq_at(UINT32_MAX - 3);
	build_write(1, 30);
	assert_int_equal(sq.pi, 4);
	sq.wr_pi = sq.wr_ci = UINT32_MAX - 1;
	build_write(2, 0);
	build_write(3, 0);
	build_write(4, 0);
	assert_int_equal(sq.wr_pi, 1);
	assert_int_equal(room(), BLOCKS - 3);
	retire(5);
	assert_int_equal(room(), BLOCKS - 1);
	retire(6);
	assert_int_equal(room(), BLOCKS);
}

static void test_no_sq_has_no_room(void **state)
{
	struct skua_sq none = { .blocks = 0 };

	assert_true(skua_sq_full(&none));
	assert_false(skua_sq_publish(&none, true));
}

static void test_publish_writes_the_record(void **state)
{
	build_write(1, 1);
	build_write(2, 1);
	assert_int_equal(sq.dbr->pi, 0);
	skua_sq_publish(&sq, true);
	assert_int_equal(le32toh(sq.dbr->pi), 2);
	assert_int_equal(sq.dbr->event, 0);
}

static void test_without_event_index_every_publish_rings(void **state)
{
	sq.dbr->event = htole32(1000);
	build_write(1, 1);
	assert_true(skua_sq_publish(&sq, false));
	build_write(2, 1);
	assert_true(skua_sq_publish(&sq, false));
}

static void test_nothing_built_is_nothing_published(void **state)
{
	assert_false(skua_sq_publish(&sq, false));
	build_write(1, 1);
	skua_sq_take_back(&sq, 0);
	assert_int_equal(sq.pi, 0);
	assert_int_equal(room(), BLOCKS);
	assert_false(skua_sq_publish(&sq, false));
}

/* DBR-3: a locked instruction is a barrier to the device only where KVM runs the machine. */
static void test_only_kvm_has_locked_barriers(void **state)
{
	uint32_t regs[3];

	memcpy(regs, "KVMKVMKVM\0\0", sizeof(regs));
	assert_true(skua_is_kvm(regs[0], regs[1], regs[2]));
	memcpy(regs, "TCGTCGTCGTCG", sizeof(regs));
	assert_false(skua_is_kvm(regs[0], regs[1], regs[2]));
	assert_false(skua_is_kvm(0, 0, 0));
}

/* DBR-5: ring if and only if event lies in [old, new). */
static void test_event_index_rings_only_when_passed(void **state)
{
	static const uint32_t at[] = { 0, 5, 15, UINT32_MAX - 1, 0x80000000u - 1 };
	unsigned int i;
	int32_t d;

	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (d = -20; d <= 20; d++) {
			sq_at(at[i]);
			sq.dbr->event = htole32(at[i] + d);
			build_write(1, 1);
			build_write(2, 1);
			build_write(3, 1);
			assert_int_equal(skua_sq_publish(&sq, true), d >= 0 && d < 3);
		}
}

static void test_reset_clears_pi_and_leaves_event(void **state)
{
	build_write(1, 1);
	skua_sq_publish(&sq, true);
	sq.dbr->event = htole32(77);
	skua_sq_reset(&sq);
	assert_int_equal(sq.dbr->pi, 0);
	assert_int_equal(le32toh(sq.dbr->event), 77);
	assert_int_equal(room(), BLOCKS);
}

static void test_rq_fills_comes_back_and_wraps(void **state)
{
	const struct skua_rqe *rqe;
	const struct skua_sge *sge;
	struct skua_rq rq;
	uint32_t i;

	fake_rq_init(&rq, 4, 6);
	for (i = 0; i < 11; i++) {
		if (i >= 4) {
			assert_true(skua_rq_full(&rq));
			skua_rq_retire(&rq);
		}
		assert_false(skua_rq_full(&rq));
		skua_sge_set(skua_rqe_begin(&rq, 100 + i, 1), i, 2 * i, 3 * i);
		skua_rq_publish(&rq);

		assert_int_equal(le32toh(rq.dbr->pi), i + 1);
		rqe = (void *)((char *)rq.buf + (i % 4) * 64);
		sge = (void *)(rqe + 1);
		assert_int_equal(le32toh(rqe->cookie), i % 4);
		assert_int_equal(rqe->num_sge, 1);
		assert_int_equal(rq.wr_id[i % 4], 100 + i);
		assert_int_equal(le64toh(sge->addr), i);
		assert_int_equal(le32toh(sge->length), 2 * i);
		assert_int_equal(le32toh(sge->lkey), 3 * i);
	}
	skua_rq_reset(&rq);
	assert_int_equal(rq.dbr->pi, 0);
	assert_false(skua_rq_full(&rq));
	fake_rq_free(&rq);
}

static void test_no_rq_is_full(void **state)
{
	struct skua_rq none = { .size = 0 };

	assert_true(skua_rq_full(&none));
	skua_rq_publish(&none);
	skua_rq_reset(&none);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_write_of_each_sge_count_at_each_slot),
		T(test_wqe_touches_no_block_but_its_own),
		T(test_inline_data_wraps_at_any_byte),
		T(test_room_is_what_was_retired),
		T(test_room_across_the_end_of_32_bits),
		T(test_no_sq_has_no_room),
		T(test_publish_writes_the_record),
		T(test_without_event_index_every_publish_rings),
		T(test_nothing_built_is_nothing_published),
		T(test_only_kvm_has_locked_barriers),
		T(test_event_index_rings_only_when_passed),
		T(test_reset_clears_pi_and_leaves_event),
		T(test_rq_fills_comes_back_and_wraps),
		T(test_no_rq_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
