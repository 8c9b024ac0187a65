// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QUERY_DEVICE: what the device has, and how much of it.
 */
#include "core/device.h"
#include "core/tags.h"

int cmd_query_device(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	const uint8_t *mac = dev->perm_mac;
	struct skua_device_caps caps = {
		.guid = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] },
		.max_mr_size = htole64(LIMIT_MR_SIZE),
		.max_pages = htole64(dev->max_pages),
		.clock_khz = htole32(1000000),
		.fw_version = htole32(SKUA_VERSION(1, 0)),
		.max_eq = htole32(LIMIT_EQ),
		.max_pd = htole32(LIMIT_PD),
		.max_cq = htole32(LIMIT_CQ),
		.max_qp = htole32(LIMIT_QP),
		.max_mr = htole32(LIMIT_MR),
		.max_cqe = htole32(1u << LIMIT_LOG_CQE),
		.max_sq_blocks = htole32(1u << LIMIT_LOG_SQ_BLOCKS),
		.max_rq_entries = htole32(1u << LIMIT_LOG_RQ),
		.max_eqe = htole32(1u << LIMIT_LOG_EQE),
		.num_db_pages = htole32(LIMIT_DB_PAGES),
		.reserved_lkey = htole32(RESERVED_LKEY),
		.max_msg_size = htole32(LIMIT_MSG),
		.max_send_sge = htole16(LIMIT_SGE),
		.max_recv_sge = htole16(LIMIT_SGE),
		.max_inline = htole16(LIMIT_INLINE),
		.max_rd_atomic = htole16(LIMIT_RD),
		.gid_table_len = htole16(LIMIT_GID),
		.pkey_table_len = htole16(1),
		.num_ports = 1,
		.cmd_timeout = LIMIT_CMD_TIMEOUT,
	};

	if (dev_has(dev, SKUA_F_UD)) {
		caps.max_mcast_groups = htole32(LIMIT_MCAST_GROUPS);
		caps.max_mcast_qps = htole32(LIMIT_MCAST_QPS);
	}
	if (dev_has(dev, SKUA_F_MW))
		caps.max_mw = htole32(LIMIT_MW);
	if (dev_has(dev, SKUA_F_FAST_REG))
		caps.max_fast_pages = htole32(LIMIT_FAST_PAGES);
	if (dev_has(dev, SKUA_F_SG_GAPS))
		caps.max_fast_pieces = htole32(LIMIT_FAST_PIECES);
	if (dev_has(dev, SKUA_F_SRQ)) {
		caps.max_srq = htole32(LIMIT_SRQ);
		caps.max_srq_entries = htole32(1u << LIMIT_LOG_SRQ);
	}
	if (dev_has(dev, SKUA_F_FLUSH))
		caps.flush_caps = htole32(flush_caps(dev));
	if (dev_has(dev, SKUA_F_XRC))
		caps.max_xrcd = htole32(LIMIT_XRCD);
	if (dev_has(dev, SKUA_F_DM))
		caps.max_dm = htole64(LIMIT_DM);
	if (dev_has(dev, SKUA_F_RAW_PACKET)) {
		caps.max_flow = htole32(LIMIT_FLOW);
		caps.max_sniffer = htole32(LIMIT_SNIFFER);
		caps.max_rss = htole32(LIMIT_RSS);
	}
	if (dev_has(dev, SKUA_F_COUNTER_SET))
		caps.max_counter_set = htole32(LIMIT_COUNTER_SET);
	if (dev_has(dev, SKUA_F_RATE_LIMIT)) {
		caps.min_rate = htole32(LIMIT_MIN_RATE);
		caps.max_rate = htole32(PORT_MBPS * 1000);
	}
	if (dev_has(dev, SKUA_F_ECE))
		caps.ece_options = htole32(ECE_OPTIONS);
	if (dev_has(dev, SKUA_F_TSO))
		caps.max_tso = htole32(LIMIT_TSO);
	if (dev_has(dev, SKUA_F_TAG_MATCHING))
		caps.max_tags = htole32(LIMIT_TAGS);
	inject_caps(dev, &caps);
	return cmd_output(dev, cpl, &caps, sizeof(caps));
}
