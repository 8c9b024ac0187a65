// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The performance management class of the port (IBTA volume 1, 16.1), from which the core makes
 * the files of counters/ in sysfs. They count what RoCE moves; the netdev counts its frames.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include <linux/skua/command.h>

#include "skua_ib.h"

/* Counters of this class do not wrap: they stay at their largest value. */
static __be16 skua_ib_pma_16(u64 value)
{
	return cpu_to_be16(min_t(u64, value, U16_MAX));
}

static __be32 skua_ib_pma_32(u64 value)
{
	return cpu_to_be32(min_t(u64, value, U32_MAX));
}

/* Data is counted in units of 4 bytes. */
static u64 skua_ib_pma_words(__le64 bytes)
{
	return le64_to_cpu(bytes) / 4;
}

static u64 skua_ib_pma_rcv_errors(const struct skua_stats *stats)
{
	return le64_to_cpu(stats->rdma_rx_bad_packet) + le64_to_cpu(stats->rdma_rx_bad_icrc) +
	       le64_to_cpu(stats->rdma_rx_bad_opcode);
}

static void skua_ib_pma_counters(struct skua_dev *dev, const struct skua_stats *stats, void *data)
{
	struct ib_pma_portcounters *counters = data;

	counters->link_downed_counter =
		min_t(u32, atomic_read(&dev->netdev->carrier_down_count), U8_MAX);
	counters->port_rcv_errors = skua_ib_pma_16(skua_ib_pma_rcv_errors(stats));
	counters->port_xmit_discards = skua_ib_pma_16(le64_to_cpu(stats->tx_spoofed));
	counters->port_xmit_data = skua_ib_pma_32(skua_ib_pma_words(stats->rdma_tx_bytes));
	counters->port_rcv_data = skua_ib_pma_32(skua_ib_pma_words(stats->rdma_rx_bytes));
	counters->port_xmit_packets = skua_ib_pma_32(le64_to_cpu(stats->rdma_tx_packets));
	counters->port_rcv_packets = skua_ib_pma_32(le64_to_cpu(stats->rdma_rx_packets));
}

static void skua_ib_pma_counters_ext(const struct skua_stats *stats, void *data)
{
	struct ib_pma_portcounters_ext *counters = data;

	counters->port_xmit_data = cpu_to_be64(skua_ib_pma_words(stats->rdma_tx_bytes));
	counters->port_rcv_data = cpu_to_be64(skua_ib_pma_words(stats->rdma_rx_bytes));
	counters->port_xmit_packets = cpu_to_be64(le64_to_cpu(stats->rdma_tx_packets));
	counters->port_rcv_packets = cpu_to_be64(le64_to_cpu(stats->rdma_rx_packets));
}

static int skua_ib_pma_get(struct skua_dev *dev, __be16 attr, struct ib_pma_mad *mad)
{
	struct ib_class_port_info *info = (void *)mad->data;
	struct skua_stats stats;
	int err;

	if (attr == IB_PMA_CLASS_PORT_INFO) {
		/* Unicast and multicast are not counted apart. */
		info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF;
		return 0;
	}
	if (attr != IB_PMA_PORT_COUNTERS && attr != IB_PMA_PORT_COUNTERS_EXT)
		return -EOPNOTSUPP;
	err = skua_cmd_query_stats(dev, &stats);
	if (err)
		return err;
	if (attr == IB_PMA_PORT_COUNTERS)
		skua_ib_pma_counters(dev, &stats, mad->data);
	else
		skua_ib_pma_counters_ext(&stats, mad->data);
	return 0;
}

/* This host's questions are answered; others' (@in_wc) are left to who listens for them. */
int skua_ib_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
			const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
			size_t *out_size, u16 *out_pkey_index)
{
	if (in_wc || in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (skua_ib_pma_get(to_skua_dev(ibdev), in->mad_hdr.attr_id, (struct ib_pma_mad *)out))
		return IB_MAD_RESULT_FAILURE;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
