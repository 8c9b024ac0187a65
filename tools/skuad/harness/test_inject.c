// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Injected faults: what a host then sees of the device is what the manual says of such a fault. */
#include <errno.h>

#include "core/device.h"
#include "harness/harness.h"
#include "nic/control.h"

static void inject(struct node *n, enum skua_fault fault, uint32_t number)
{
	assert_int_equal(skua_dev_inject(n->dev, fault, number), 0);
}

/* Publishes a command that does nothing; true if it was completed. */
static bool nop_is_answered(struct world *w, struct node *n)
{
	uint32_t slot = n->cmd_pi % (1 << LOG_CMD);
	struct skua_cmd *cmd = at(n, n->cmd_ring + slot * sizeof(*cmd));
	struct skua_cmd_cpl *cpl = at(n, n->cmd_cpl);
	uint8_t before[(1 << LOG_CMD) * sizeof(*cpl)];

	*cmd = (struct skua_cmd)CMD(SKUA_CMD_NOP, .hdr.id = htole32(0x12345678));
	cmd->hdr.opcode = htole16(SKUA_CMD_NOP);
	memcpy(before, cpl, sizeof(before));
	host_store32(&((struct skua_dbr *)at(n, n->cmd_dbr))->pi, ++n->cmd_pi);
	ring(n, SKUA_DB_CMD, 0, n->cmd_pi);
	pass(w, 10000000000ull);
	return memcmp(before, cpl, sizeof(before));
}

static void commands_vanish_as_many_as_asked(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	inject(n, SKUA_FAULT_COMMAND_TIMEOUT, 2);
	assert_false(nop_is_answered(w, n));
	assert_false(nop_is_answered(w, n));
	assert_true(nop_is_answered(w, n));
	inject(n, SKUA_FAULT_COMMAND_TIMEOUT, 5);
	inject(n, SKUA_FAULT_NONE, 0);
	assert_true(nop_is_answered(w, n));
}

static void reads_are_not_answered_as_many_as_asked(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	inject(n, SKUA_FAULT_READ_TIMEOUT, 2);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), UINT32_MAX);
	assert_int_equal(reg_read(n, SKUA_REG_SIGNATURE), UINT32_MAX);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
	inject(n, SKUA_FAULT_READ_TIMEOUT, 1);
	inject(n, SKUA_FAULT_NONE, 0);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY | SKUA_STATUS_ENABLED);
}

/* What the driver does about it meets the fault, too, if it was asked for twice. */
static void a_reset_does_not_end_the_loss_of_commands(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	inject(n, SKUA_FAULT_COMMAND_TIMEOUT, 2);
	assert_false(nop_is_answered(w, n));
	skua_dev_reset(n->dev);
	assert_int_equal(n->dev->inject.commands, 1);
}

/* Commands that destroy neither fail nor count. */
static void the_command_that_was_asked_for_fails(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd create = CMD(SKUA_CMD_CREATE_PD);

	inject(n, SKUA_FAULT_COMMAND_ERROR, 2);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_PD, must(w, n, create)));
	assert_int_equal(command(w, n, &create), SKUA_CMD_NO_RESOURCE);
	assert_int_equal(n->number, 0);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_PD, must(w, n, create)));
	inject(n, SKUA_FAULT_COMMAND_ERROR, 1);
	inject(n, SKUA_FAULT_NONE, 0);
	must(w, n, object_cmd(SKUA_CMD_DESTROY_PD, must(w, n, create)));
}

/* A driver that gets an object or pages back cannot go on after a refusal, nor a QP without the answer to its fault. */
static void commands_that_give_back_do_not_fail(void **state)
{
	static const uint16_t opcodes[] = {
		SKUA_CMD_DESTROY_EQ, SKUA_CMD_DESTROY_PD, SKUA_CMD_DESTROY_CQ, SKUA_CMD_DESTROY_QP,
		SKUA_CMD_DESTROY_MR, SKUA_CMD_INVALIDATE_MR, SKUA_CMD_DESTROY_MW, SKUA_CMD_DESTROY_SRQ,
		SKUA_CMD_DESTROY_XRCD, SKUA_CMD_FREE_DM, SKUA_CMD_DESTROY_FLOW, SKUA_CMD_DESTROY_RSS,
		SKUA_CMD_DESTROY_COUNTER_SET, SKUA_CMD_FAULT_RESUME, SKUA_CMD_UPDATE_PAGES,
	};
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_cmd cmd;

	/* The numbers are nobody's. */
	inject(n, SKUA_FAULT_COMMAND_ERROR, 1);
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		cmd = object_cmd(opcodes[i], 0);
		assert_int_equal(command(w, n, &cmd), SKUA_CMD_BAD_OBJECT);
	}
	cmd.update_pages.list = htole64(n->buf);
	assert_int_equal(command(w, n, &cmd), SKUA_CMD_NO_RESOURCE);
}

static void fatal_is_told_and_stops_everything(void **state)
{
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	inject(a, SKUA_FAULT_FATAL, 0);
	expect_event(w, a, SKUA_EVENT_DEVICE_FATAL, SKUA_HEALTH_INJECTED);
	assert_int_equal(reg_read(a, SKUA_REG_STATUS),
			 SKUA_STATUS_READY | SKUA_STATUS_ENABLED | SKUA_STATUS_FATAL);
	assert_int_equal(reg_read(a, SKUA_REG_HEALTH), SKUA_HEALTH_INJECTED);
	assert_false(nop_is_answered(w, a));
	memset(at(a, a->buf), 0x11, 4096);
	fill(b, 4096, 3);
	post(b, SKUA_WQE_WRITE, SKUA_WQE_SIGNALED, b->buf, 4096, a->buf, a->key, 0);
	settle(w);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(((uint8_t *)at(a, a->buf))[i], 0x11);
	expect_no_event(w, a);
	reg_write(a, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	settle(w);
	assert_int_equal(reg_read(a, SKUA_REG_STATUS), SKUA_STATUS_READY);
}

static void a_device_that_is_gone_reads_all_ones(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	uint8_t bytes[8];

	inject(n, SKUA_FAULT_GONE, 0);
	for (uint32_t reg = 0; reg < 0x100; reg += 4)
		assert_int_equal(reg_read(n, reg), 0xffffffff);
	bar_read(n, SKUA_BAR_DOORBELL, 0, bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0xff);
	assert_false(nop_is_answered(w, n));
	expect_no_event(w, n);
	/* Not even this register is there. */
	reg_write(n, SKUA_REG_CONTROL, SKUA_CONTROL_RESET);
	settle(w);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), 0xffffffff);
	/* A function level reset. */
	skua_dev_reset(n->dev);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
	inject(n, SKUA_FAULT_GONE, 0);
	inject(n, SKUA_FAULT_NONE, 0);
	assert_int_equal(reg_read(n, SKUA_REG_STATUS), SKUA_STATUS_READY);
}

static void a_cq_error_takes_its_qps_along(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	inject(n, SKUA_FAULT_CQ_ERROR, n->cqn);
	inject(n, SKUA_FAULT_CQ_ERROR, n->cqn);
	settle(w);
	assert_int_equal(poll_aeq(n)->type, SKUA_EVENT_CQ_ERR);
	expect_event(w, n, SKUA_EVENT_QP_FATAL, n->qpn);
	assert_int_equal(qp_state(w, n, n->qpn), SKUA_QPS_ERR);
}

static void qp_errors_raise_their_event_once(void **state)
{
	static const struct { enum skua_fault fault; uint8_t event; } faults[] = {
		{ SKUA_FAULT_QP_FATAL, SKUA_EVENT_QP_FATAL },
		{ SKUA_FAULT_QP_REQUEST_ERROR, SKUA_EVENT_QP_REQ_ERR },
		{ SKUA_FAULT_QP_ACCESS_ERROR, SKUA_EVENT_QP_ACCESS_ERR },
	};
	struct world *w = *state;
	struct node *a = &w->n[0], *b = &w->n[1];

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		post_recv(a, a->buf, 64);
		inject(a, faults[i].fault, a->qpn);
		inject(a, faults[i].fault, a->qpn);
		expect_event(w, a, faults[i].event, a->qpn);
		assert_int_equal(qp_state(w, a, a->qpn), SKUA_QPS_ERR);
		expect(w, a, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR);
		must(w, a, state_cmd(a->qpn, SKUA_QPS_RESET));
		reconnect(w, a, b);
	}
}

static void an_eq_that_runs_full_ends_with_how_the_port_is(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	struct skua_async_eqe *eqe;
	unsigned int events = 0, last = 0;

	inject(n, SKUA_FAULT_EQ_OVERFLOW, 0);
	do {
		while ((eqe = poll_aeq(n))) {
			assert_true(eqe->type == SKUA_EVENT_PORT_UP ||
				    eqe->type == SKUA_EVENT_PORT_DOWN);
			last = eqe->type;
			events++;
		}
		assert_true(nop_is_answered(w, n));	/* the device looks again */
	} while (n->dev->port_event.queued || events <= n->dev->async_eq->size);
	assert_int_equal(events, n->dev->async_eq->size + 1);
	assert_int_equal(last, SKUA_EVENT_PORT_UP);
}

static void stray_events_are_of_nothing(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	inject(n, SKUA_FAULT_STRAY_EVENTS, 0);
	settle(w);
	assert_int_equal(poll_aeq(n)->type, 0x7f);
	assert_int_equal(poll_aeq(n)->type, SKUA_EVENT_QP_FATAL);
	expect_event(w, n, SKUA_EVENT_CQ_ERR, 0xffffffff);
}

static void a_stray_completion_is_of_no_qp(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	const struct skua_cqe *cqe;

	inject(n, SKUA_FAULT_STRAY_COMPLETION, n->cqn);
	settle(w);
	cqe = poll_cq(n);
	assert_non_null(cqe);
	assert_int_equal(le32toh(cqe->qpn), 0xffffff);
	assert_null(poll_cq(n));
}

/* Nothing is posted: it would be the first entry. */
static void a_stray_receive_is_of_no_entry(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];
	const struct skua_cqe *cqe;

	inject(n, SKUA_FAULT_STRAY_RECEIVE, n->qpn);
	settle(w);
	cqe = poll_cq(n);
	assert_non_null(cqe);
	assert_int_equal(le32toh(cqe->qpn), n->qpn);
	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(le32toh(cqe->cookie), 0);
	assert_null(poll_cq(n));
}

static void a_device_that_poses_as_another_does_so_through_resets(void **state)
{
	static const struct { enum skua_fault fault; uint32_t reg, value; } guises[] = {
		{ SKUA_FAULT_OTHER_SIGNATURE, SKUA_REG_SIGNATURE, ~SKUA_SIGNATURE },
		{ SKUA_FAULT_OTHER_VERSION, SKUA_REG_VERSION,
		  SKUA_VERSION(SKUA_VERSION_MAJOR + 1, 0) },
		{ SKUA_FAULT_NEW_FEATURES, SKUA_REG_FEATURES_HI, 0xffffffff },
	};
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (size_t i = 0; i < sizeof(guises) / sizeof(guises[0]); i++) {
		uint32_t true_value = reg_read(n, guises[i].reg);

		assert_int_not_equal(true_value, guises[i].value);
		inject(n, guises[i].fault, 0);
		assert_int_equal(reg_read(n, guises[i].reg), guises[i].value);
		skua_dev_reset(n->dev);
		assert_int_equal(reg_read(n, guises[i].reg), guises[i].value);
		inject(n, SKUA_FAULT_NONE, 0);
		assert_int_equal(reg_read(n, guises[i].reg), true_value);
	}
}

static void limits_can_be_hidden(void **state)
{
	static const struct { enum skua_fault fault; bool qps, mrs; } guises[] = {
		{ SKUA_FAULT_NO_MRS, true, false },
		{ SKUA_FAULT_NO_LIMITS, false, false },
		{ SKUA_FAULT_NONE, true, true },
	};
	struct world *w = *state;
	struct node *n = &w->n[0];

	for (size_t i = 0; i < sizeof(guises) / sizeof(guises[0]); i++) {
		const struct skua_device_caps *caps;

		inject(n, guises[i].fault, 0);
		caps = query(w, n, (struct skua_cmd)CMD(SKUA_CMD_QUERY_DEVICE), sizeof(*caps));
		assert_int_equal(!!caps->max_qp, guises[i].qps);
		assert_int_equal(!!caps->max_mr, guises[i].mrs);
	}
}

static void what_is_not_there_cannot_fail(void **state)
{
	struct world *w = *state;
	struct node *n = &w->n[0];

	assert_int_equal(skua_dev_inject(n->dev, SKUA_FAULT_CQ_ERROR, 0), -ENOENT);
	assert_int_equal(skua_dev_inject(n->dev, SKUA_FAULT_QP_FATAL, 0), -ENOENT);
	assert_int_equal(skua_dev_inject(n->dev, SKUA_FAULT_STRAY_RECEIVE, 0), -ENOENT);
	skua_dev_reset(n->dev);
	assert_int_equal(skua_dev_inject(n->dev, SKUA_FAULT_QP_FATAL, n->qpn), -ENXIO);
	assert_int_equal(skua_dev_inject(n->dev, SKUA_FAULT_EQ_OVERFLOW, 0), -ENXIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STEPPED(commands_vanish_as_many_as_asked, "RST-6"),
		STEPPED(reads_are_not_answered_as_many_as_asked, "REG-4"),
		STEPPED(a_reset_does_not_end_the_loss_of_commands, "RST-6"),
		STEPPED(the_command_that_was_asked_for_fails, "CMD-12"),
		STEPPED(commands_that_give_back_do_not_fail, "CMD-12"),
		STEPPED(fatal_is_told_and_stops_everything, "RST-3"),
		STEPPED(a_device_that_is_gone_reads_all_ones, "RST-6 REG-4"),
		STEPPED(a_cq_error_takes_its_qps_along, "ERR-9"),
		STEPPED(qp_errors_raise_their_event_once, "ERR-11"),
		STEPPED(an_eq_that_runs_full_ends_with_how_the_port_is, "EVT-5 EVT-7"),
		STEPPED(stray_events_are_of_nothing, "EQE-2"),
		STEPPED(a_stray_completion_is_of_no_qp, "CQE-4"),
		STEPPED(a_stray_receive_is_of_no_entry, "RST-11"),
		STEPPED(a_device_that_poses_as_another_does_so_through_resets, "INI-1"),
		STEPPED(limits_can_be_hidden, "INI-6"),
		cmocka_unit_test_setup_teardown(what_is_not_there_cannot_fail, setup_stepped,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
