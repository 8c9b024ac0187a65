// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Polling, by ibv_poll_cq() and by the calls of an extended CQ. */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "queues.h"

static void test_poll_send(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_READ);
	struct ibv_wc wc[4];

	assert_int_equal(post(&wr), 0);
	wr.wr_id = 0xbeef;
	assert_int_equal(post(&wr), 0);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 4, wc), 0);

	complete((struct skua_cqe) {
		.cookie = htole32(1), .byte_len = htole32(300), .sq_ci = htole32(2),
		.opcode = SKUA_CQE_READ,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 0xbeef);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[0].opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc[0].byte_len, 300);
	assert_int_equal(wc[0].qp_num, QPN);
	assert_int_equal(wc[0].wc_flags, 0);
	assert_int_equal(qp.sq.wr_ci, 2);
	assert_int_equal(le32toh(cq.ring.dbr->ci), 1);
}

static void test_poll_recv(void **state)
{
	struct ibv_recv_wr wr = { .wr_id = 0xcafe, .sg_list = sges, .num_sge = 1 }, *bad;
	struct ibv_wc wc[2];

	assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
	wr.wr_id = 0xbeef;
	assert_int_equal(skua_post_recv(&qp.vqp.qp, &wr, &bad), 0);
	complete((struct skua_cqe) {
		.cookie = htole32(0), .opcode = SKUA_CQE_RECV_WRITE_IMM,
		.imm_data = htobe32(0x12345678), .flags = SKUA_CQE_WITH_IMM,
	});
	complete((struct skua_cqe) {
		.cookie = htole32(1), .opcode = SKUA_CQE_RECV,
		.inv_key = htole32(0x77), .flags = SKUA_CQE_WITH_INV,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 2, wc), 2);
	assert_int_equal(wc[0].wr_id, 0xcafe);
	assert_int_equal(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc[0].imm_data), 0x12345678);
	assert_int_equal(wc[1].wr_id, 0xbeef);
	assert_int_equal(wc[1].opcode, IBV_WC_RECV);
	assert_int_equal(wc[1].wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc[1].invalidated_rkey, 0x77);
	assert_int_equal(qp.rq.ci, 2);
}

static void test_poll_error(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	struct ibv_wc wc;

	assert_int_equal(post(&wr), 0);
	complete((struct skua_cqe) {
		.sq_ci = htole32(1), .opcode = SKUA_CQE_SEND,
		.status = SKUA_CQE_RNR_RETRY_EXC_ERR,
		.vendor_err = SKUA_VENDOR_ERR_PEER_NAK,
	});
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 0xfeed);
	assert_int_equal(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(wc.vendor_err, SKUA_VENDOR_ERR_PEER_NAK);
}

/* GRO-7: a program gets the status of a later version as it is. It is an error by not being 0. */
static void test_poll_a_status_of_a_later_version(void **state)
{
	static const uint8_t reserved[] = { SKUA_CQE_REM_ABORT_ERR, SKUA_CQE_GENERAL_ERR, UINT8_MAX };
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;

	for (uint32_t i = 0; i < 2 * sizeof(reserved); i++) {
		struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
		uint8_t status = reserved[i / 2];

		assert_int_equal(post(&wr), 0);
		complete((struct skua_cqe) {
			.cookie = htole32(i), .sq_ci = htole32(i + 1), .opcode = SKUA_CQE_SEND, .status = status,
		});
		if (i % 2) {
			assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), 0);
			wc.status = cq.vcq.cq_ex.status;
			ibv_end_poll(&cq.vcq.cq_ex);
		} else {
			assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
		}
		assert_int_equal(wc.status, status);
	}
}

static void test_dead_device_shows_when_the_cq_is_empty(void **state)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;

	complete((struct skua_cqe) { .opcode = SKUA_CQE_SEND });
	info.state = SKUA_INFO_DEAD;
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), 1);
	assert_int_equal(skua_poll_cq(&cq.vcq.cq, 1, &wc), -1);
	assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), EIO);
	assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), EIO);
}

/*
 * The device writes its last CQE and dies after the CQ was found empty, and before the information
 * page is read: that page cannot be read at first, and the handler of the fault is the device.
 */
static struct skua_info_page *late_info;

static void die_late(int signal)
{
	assert_int_equal(mprotect(late_info, SKUA_PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
	complete((struct skua_cqe) { .opcode = SKUA_CQE_SEND });
	late_info->state = SKUA_INFO_DEAD;
}

static void the_last_cqe_is_found(int (*poll)(void))
{
	const struct sigaction action = { .sa_handler = die_late };
	struct sigaction old;

	late_info = mmap(NULL, SKUA_PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(late_info != MAP_FAILED);
	cq.info = late_info;
	sigaction(SIGSEGV, &action, &old);
	assert_int_equal(poll(), 1);
	sigaction(SIGSEGV, &old, NULL);
	assert_int_equal(poll(), -1);
	munmap(late_info, SKUA_PAGE_SIZE);
}

static int poll_one(void)
{
	struct ibv_wc wc;

	return skua_poll_cq(&cq.vcq.cq, 1, &wc);
}

static int poll_one_by_calls(void)
{
	struct ibv_poll_cq_attr attr = {};
	int err = ibv_start_poll(&cq.vcq.cq_ex, &attr);

	if (!err)
		ibv_end_poll(&cq.vcq.cq_ex);
	return !err ? 1 : err == ENOENT ? 0 : -1;
}

static void test_the_last_cqe_of_a_dying_device_is_found(void **state)
{
	the_last_cqe_is_found(poll_one);
	the_last_cqe_is_found(poll_one_by_calls);
}

static void test_extended_poll(void **state)
{
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	assert_int_equal(ibv_start_poll(cq_ex, &attr), ENOENT);
	assert_int_equal(post(&wr), 0);
	complete((struct skua_cqe) {
		.opcode = SKUA_CQE_SEND, .sq_ci = htole32(1), .timestamp = htole64(1ull << 40),
	});
	complete((struct skua_cqe) {
		.opcode = SKUA_CQE_RECV, .byte_len = htole32(5), .imm_data = htobe32(9),
		/* CQE-7: a number that is not known is passed on, and decides nothing. */
		.flags = SKUA_CQE_WITH_IMM, .status = SKUA_CQE_LOC_LEN_ERR, .vendor_err = 250,
	});

	assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
	assert_int_equal(cq_ex->wr_id, 0xfeed);
	assert_int_equal(cq_ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_SEND);
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), QPN);
	assert_true(ibv_wc_read_completion_ts(cq_ex) == 1ull << 40);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(cq_ex->status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq_ex), 5);
	assert_int_equal(ibv_wc_read_wc_flags(cq_ex), IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(ibv_wc_read_imm_data(cq_ex)), 9);
	assert_int_equal(ibv_wc_read_vendor_err(cq_ex), 250);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	assert_int_equal(ibv_wc_read_byte_len(cq_ex), 5);
	ibv_end_poll(cq_ex);
	assert_int_equal(le32toh(cq.ring.dbr->ci), 2);
}

/*
 * CQ-3: a CQ as large as the SQ never overflows, though a thread posts as soon as there is room,
 * and what it posts completes at once.
 */
#define POSTED	100000

static void *post_and_complete(void *arg)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	bool *overflow = arg;
	uint32_t i, at;

	for (i = 0; i < POSTED; i++) {
		at = qp.sq.pi;
		while (skua_post_send(&qp.vqp.qp, &wr, &bad))
			sched_yield();
		if (dev.pi - le32toh(__atomic_load_n(&dev.dbr->ci, __ATOMIC_ACQUIRE)) >= dev.size) {
			__atomic_store_n(overflow, true, __ATOMIC_RELEASE);
			break;
		}
		complete((struct skua_cqe) {
			.opcode = SKUA_CQE_SEND, .cookie = htole32(at & (BLOCKS - 1)),
			.sq_ci = htole32(qp.sq.pi),
		});
	}
	return NULL;
}

static uint32_t poll_some(void)
{
	struct ibv_wc wc[MAX_WR];
	int n = skua_poll_cq(&cq.vcq.cq, MAX_WR, wc);

	assert_true(n >= 0);
	return n;
}

static uint32_t poll_some_by_calls(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *cq_ex = &cq.vcq.cq_ex;
	uint32_t n = 0;

	if (ibv_start_poll(cq_ex, &attr))
		return 0;
	do
		n++;
	while (!ibv_next_poll(cq_ex));
	ibv_end_poll(cq_ex);
	return n;
}

static void posting_never_overruns_the_cq(uint32_t (*poll)(void))
{
	bool overflow = false;
	pthread_t thread;
	uint32_t n = 0;

	dev.size = MAX_WR;
	skua_cq_set_size(&cq.ring, MAX_WR);
	assert_int_equal(pthread_create(&thread, NULL, post_and_complete, &overflow), 0);
	while (n < POSTED && !__atomic_load_n(&overflow, __ATOMIC_ACQUIRE))
		n += poll();
	pthread_join(thread, NULL);
	assert_false(overflow);
}

static void test_posting_never_overruns_the_cq(void **state)
{
	posting_never_overruns_the_cq(poll_some);
}

static void test_posting_never_overruns_an_extended_cq(void **state)
{
	posting_never_overruns_the_cq(poll_some_by_calls);
}

/* What is posted between ibv_start_poll() and ibv_end_poll() may complete at once, too. */
static void test_posting_while_polling(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	const struct skua_cqe cqe = { .opcode = SKUA_CQE_SEND };
	struct ibv_poll_cq_attr attr = {};
	unsigned int i;

	dev.size = MAX_WR;
	skua_cq_set_size(&cq.ring, MAX_WR);
	for (i = 0; i < MAX_WR; i++) {
		assert_int_equal(post(&wr), 0);
		complete(cqe);
	}
	assert_int_equal(ibv_start_poll(&cq.vcq.cq_ex, &attr), 0);
	assert_int_equal(post(&wr), 0);
	complete(cqe);			/* asserts that there is room */
	ibv_end_poll(&cq.vcq.cq_ex);
}

/* Ticks of 4 ns, and of a third of one, near the moment that the page names and far from it. */
static void test_wall_clock(void **state)
{
	static const uint64_t then = 1ull << 40, ns = 1700000000ull * 1000000000;
	struct skua_info_page page = { .sequence = 2, .cycles = then, .ns = ns, .mult = 4u << 20, .shift = 20 };

	assert_int_equal(skua_wall_clock(&page, then), ns);
	assert_int_equal(skua_wall_clock(&page, then + 1), ns + 4);
	assert_int_equal(skua_wall_clock(&page, then - 1), ns - 4);
	assert_int_equal(skua_wall_clock(&page, then + (1ull << 45)), ns + (4ull << 45));
	assert_int_equal(skua_wall_clock(&page, 0), ns - 4 * then);
	page.shift = 31;
	page.mult = (1u << 31) / 3 + 1;
	assert_int_equal(skua_wall_clock(&page, then + 3), ns + 1);
	assert_int_equal(skua_wall_clock(&page, then + 3000000), ns + 1000000);
	assert_in_range(skua_wall_clock(&page, then + (3ull << 40)), ns + (1ull << 40), ns + (1ull << 40) + 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_poll_send),
		T(test_poll_recv),
		T(test_poll_error),
		T(test_poll_a_status_of_a_later_version),
		T(test_dead_device_shows_when_the_cq_is_empty),
		T(test_the_last_cqe_of_a_dying_device_is_found),
		T(test_extended_poll),
		T(test_posting_never_overruns_the_cq),
		T(test_posting_never_overruns_an_extended_cq),
		T(test_posting_while_polling),
		T(test_wall_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
