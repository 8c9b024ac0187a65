// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counters, by the names that the manual gives them; those that mlx5 or rxe have under other names
 * by these, too, because monitoring looks for them. Those that are optional with mlx5 are optional
 * here: the core shows them when an administrator has asked for them. The device always counts.
 */
#include <linux/skua/command.h>

#include "skua_ib.h"

#define SKUA_IB_ALIASES(X)					\
	X(rx_write_requests, rdma_rx_write)			\
	X(rx_read_requests, rdma_rx_read)			\
	X(rx_atomic_requests, rdma_rx_atomic)			\
	X(out_of_sequence, out_of_order)			\
	X(duplicate_request, duplicates)			\
	X(rnr_nak_retry_err, rnr_nak_received)			\
	X(packet_seq_err, seq_nak_received)			\
	X(local_ack_timeout_err, ack_timeouts)			\
	X(resp_remote_access_errors, access_nak_sent)		\
	X(rx_icrc_encapsulated, rdma_rx_bad_icrc)		\
	X(np_ecn_marked_roce_packets, rdma_rx_ecn_marked)	\
	X(np_cnp_sent, cnp_sent)				\
	X(rp_cnp_handled, cnp_received)				\
	X(sent_pkts, rdma_tx_packets)				\
	X(rcvd_pkts, rdma_rx_packets)				\
	X(rdma_sends, rdma_tx_send)				\
	X(out_of_seq_request, out_of_order)			\
	X(rcvd_rnr_err, rnr_nak_received)			\
	X(send_rnr_err, rnr_nak_sent)				\
	X(rcvd_seq_err, seq_nak_received)

#define SKUA_IB_OPTIONAL(X)					\
	X(cc_rx_ce_pkts, rdma_rx_ecn_marked)			\
	X(cc_rx_cnp_pkts, cnp_received)				\
	X(cc_tx_cnp_pkts, cnp_sent)

/* The private part of a description is where the counter is in the device's answer. */
static const struct rdma_stat_desc skua_ib_stats[] = {
#define SKUA_IB_DESC(alias, counter, bits)						\
	{ .name = #alias, .flags = (bits), .priv = (void *)offsetof(struct skua_stats, counter) },
#define SKUA_IB_STAT(counter) SKUA_IB_DESC(counter, counter, 0)
#define SKUA_IB_ALIAS(alias, counter) SKUA_IB_DESC(alias, counter, 0)
#define SKUA_IB_OPTION(alias, counter) SKUA_IB_DESC(alias, counter, IB_STAT_FLAG_OPTIONAL)
	SKUA_STATS(SKUA_IB_STAT)
	SKUA_IB_ALIASES(SKUA_IB_ALIAS)
	SKUA_IB_OPTIONAL(SKUA_IB_OPTION)
#undef SKUA_IB_OPTION
#undef SKUA_IB_ALIAS
#undef SKUA_IB_STAT
#undef SKUA_IB_DESC
};

static_assert(ARRAY_SIZE(skua_ib_stats) <= SKUA_IB_MAX_STATS);

static void skua_ib_fill_stats(struct rdma_hw_stats *stats, const struct skua_stats *counters)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(skua_ib_stats); i++)
		stats->value[i] = le64_to_cpup((void *)counters + (uintptr_t)skua_ib_stats[i].priv);
}

struct rdma_hw_stats *skua_ib_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	struct rdma_hw_stats *stats;
	unsigned int i;

	stats = rdma_alloc_hw_stats_struct(skua_ib_stats, ARRAY_SIZE(skua_ib_stats),
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	/* The core leaves it to the driver that counters on demand are not shown at first. */
	for (i = 0; stats && i < ARRAY_SIZE(skua_ib_stats); i++)
		if (skua_ib_stats[i].flags & IB_STAT_FLAG_OPTIONAL)
			set_bit(i, stats->is_disabled);
	return stats;
}

/*
 * The core adds what its counters count, and have counted, so here counts what no counter set does.
 *
 * It asks for the first time when it makes the port's attributes, before the device is registered,
 * and loses their memory if that fails. Nothing has been counted by then, so the NIC is not asked.
 */
int skua_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			 int index)
{
	struct skua_dev *dev = to_skua_dev(ibdev);
	struct skua_stats counters;
	int err;

	if (!ib_device_try_get(ibdev))
		return ARRAY_SIZE(skua_ib_stats);
	err = skua_has(dev, SKUA_F_COUNTER_SET) ? skua_cmd_query_counter_set(dev, 0, &counters) :
						  skua_cmd_query_stats(dev, &counters);
	ib_device_put(ibdev);
	if (err)
		return err;
	skua_ib_fill_stats(stats, &counters);
	return ARRAY_SIZE(skua_ib_stats);
}

/* The device has nothing to be told: it counts what the core does not show, too. */
int skua_ib_modify_hw_stat(struct ib_device *ibdev, u32 port, unsigned int index, bool enable)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibdev);

	assign_bit(index, dev->shown_stats, enable);
	return 0;
}

/* The core of 7.2 calls it for each new counter. Skua keeps nothing of its own with a counter. */
void skua_ib_counter_init(struct rdma_counter *counter)
{
}

/* The core takes the counters of a set by the places that those of the port have. */
struct rdma_hw_stats *skua_ib_counter_alloc_stats(struct rdma_counter *counter)
{
	return skua_ib_alloc_hw_port_stats(counter->device, counter->port);
}

int skua_ib_counter_update_stats(struct rdma_counter *counter)
{
	struct skua_stats counters;
	int err;

	err = skua_cmd_query_counter_set(to_skua_dev(counter->device), counter->id, &counters);
	if (err)
		return err;
	skua_ib_fill_stats(counter->stats, &counters);
	return 0;
}

/*
 * Of the counters on demand it shows those that the port shows when its QP is bound, as with mlx5.
 */
static void skua_ib_counter_show(struct rdma_counter *counter)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(counter->device);
	unsigned int i;

	for_each_set_bit(i, dev->shown_stats, ARRAY_SIZE(skua_ib_stats))
		clear_bit(i, counter->stats->is_disabled);
}

/* The core calls with the counter's lock held. A counter has a set from its first QP on. */
int skua_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	struct skua_dev *dev = to_skua_dev(ibqp->device);
	bool is_new = !counter->id;
	int err;

	if (is_new) {
		err = skua_cmd_create_counter_set(dev, &counter->id);
		if (err)
			return err;
	}
	err = skua_cmd_bind_counter_set(dev, ibqp->qp_num, counter->id);
	if (err) {
		if (is_new) {
			skua_cmd_destroy_counter_set(dev, counter->id);
			counter->id = 0;
		}
		return err;
	}
	if (skua_ib_counter_has_options(counter))
		skua_ib_counter_show(counter);
	ibqp->counter = counter;
	return 0;
}

int skua_ib_counter_unbind_qp(struct ib_qp *ibqp, u32 port)
{
	int err;

	err = skua_cmd_unbind_counter_set(to_skua_dev(ibqp->device), ibqp->qp_num);
	if (!err)
		ibqp->counter = NULL;
	return err;
}

int skua_ib_counter_dealloc(struct rdma_counter *counter)
{
	skua_cmd_destroy_counter_set(to_skua_dev(counter->device), counter->id);
	return 0;
}
