// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the device is and can do.
 */
#include <skua/cmd.h>
#include <skua/pagelist.h>
#include <skua/wqe.h>

#include "dm.h"
#include "rate.h"
#include "skua_ib.h"

/* A responder that is not overloaded answers within 4.096 us times 2^12 (ROC-9). */
#define SKUA_IB_ACK_DELAY	12

/*
 * The NFS client makes regions of as many pages as there are SGEs of a READ, if it finds more than
 * 16. Others do not use more.
 */
#define SKUA_IB_MAX_SGE_RD	16

/* ib_umem_get() takes less than 2^32 pages, one more than these if memory begins within a page. */
#define SKUA_IB_MAX_MR_SIZE	((u64)(U32_MAX - 1) << PAGE_SHIFT)

/* WQEs may be as long as they can be, and still so many fit in an SQ. */
u32 skua_ib_max_qp_wr(const struct skua_dev *dev)
{
	return min(dev->limits.max_sq_blocks / SKUA_WQE_MAX_BLOCKS, dev->limits.max_rq_entries);
}

/* REG_MR and, without which it is of no use, invalidation. */
bool skua_ib_has_fast_reg(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_FAST_REG) && skua_has(dev, SKUA_F_INVALIDATE) &&
	       skua_has(dev, SKUA_F_RC) && dev->limits.max_fast_pages;
}

bool skua_ib_has_sg_gaps(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_SG_GAPS) && skua_ib_has_fast_reg(dev) &&
	       dev->limits.max_fast_pieces;
}

/* Pages or pieces: consumers read one limit for both. */
u32 skua_ib_max_fast_list(const struct skua_dev *dev)
{
	const struct skua_limits *limits = &dev->limits;

	return skua_ib_has_sg_gaps(dev) ? min(limits->max_fast_pages, limits->max_fast_pieces) :
					  limits->max_fast_pages;
}

/* With what it needs to be of any use. */
bool skua_ib_has_xrc(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_XRC) && skua_has(dev, SKUA_F_SRQ) && skua_has(dev, SKUA_F_RC);
}

/* With the QPs that bring messages and operations on the list, and the SRQ that has it. */
bool skua_ib_has_tags(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_TAG_MATCHING) && skua_has(dev, SKUA_F_SRQ) &&
	       skua_has(dev, SKUA_F_RC) && skua_has(dev, SKUA_F_UD);
}

/* Programs send and receive frames. */
bool skua_ib_has_raw_packet(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_RAW_PACKET) && skua_has(dev, SKUA_F_ETHERNET);
}

/* VLAN tags can be taken out of what they receive. */
bool skua_ib_has_strip_cvlan(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_STRIP_CVLAN) && skua_ib_has_raw_packet(dev);
}

/* Their checksums are filled in when they are sent, and checked when they are received. */
static bool skua_ib_has_raw_csum(const struct skua_dev *dev)
{
	return skua_has(dev, SKUA_F_IP_CSUM) && skua_has(dev, SKUA_F_ETH_CSUM);
}

static void skua_ib_tag_caps(const struct skua_dev *dev, struct ib_tm_caps *caps)
{
	caps->max_rndv_hdr_size = SKUA_RNDV_MAX_HEADER;
	caps->max_num_tags = dev->limits.max_tags;
	caps->flags = IB_TM_CAP_RNDV_RC;
	/* They are WQEs of an SQ. */
	caps->max_ops = skua_ib_max_qp_wr(dev);
	caps->max_sge = 1;
}

int skua_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibdev);
	const struct skua_limits *limits = &dev->limits;
	struct skua_query_device_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = limits->fw_version;
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SYS_IMAGE_GUID;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->atomic_cap = skua_has(dev, SKUA_F_ATOMIC) ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = skua_has(dev, SKUA_F_MASKED_ATOMIC) ? IB_ATOMIC_HCA :
									IB_ATOMIC_NONE;

	attr->max_mr_size = min(limits->max_mr_size, SKUA_IB_MAX_MR_SIZE);
	attr->page_size_cap = GENMASK(SKUA_PL_MAX_LOG_PAGE, SKUA_PL_MIN_LOG_PAGE);
	attr->max_qp = min_t(u32, limits->max_qp, INT_MAX);
	attr->max_qp_wr = skua_ib_max_qp_wr(dev);
	attr->max_send_sge = limits->max_send_sge;
	attr->max_recv_sge = limits->max_recv_sge;
	attr->max_sge_rd = min_t(int, limits->max_send_sge, SKUA_IB_MAX_SGE_RD);
	attr->max_cq = min_t(u32, limits->max_cq, INT_MAX);
	attr->max_cqe = min_t(u32, limits->max_cqe, INT_MAX);
	attr->max_mr = min_t(u32, limits->max_mr, INT_MAX);
	attr->max_pd = min_t(u32, limits->max_pd, INT_MAX);
	attr->max_qp_rd_atom = limits->max_rd_atomic;
	attr->max_qp_init_rd_atom = limits->max_rd_atomic;
	attr->max_res_rd_atom = min_t(u64, (u64)limits->max_rd_atomic * limits->max_qp, INT_MAX);
	attr->max_pkeys = limits->pkey_table_len;
	attr->local_ca_ack_delay = SKUA_IB_ACK_DELAY;
	if (skua_ib_has_fast_reg(dev)) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = skua_ib_max_fast_list(dev);
	}
	if (skua_ib_has_sg_gaps(dev))
		attr->kernel_cap_flags |= IBK_SG_GAPS_REG;
	if (skua_has(dev, SKUA_F_UD)) {
		/* They take memory, nothing of the device. */
		attr->max_ah = INT_MAX;
		attr->max_mcast_grp = min_t(u32, limits->max_mcast_groups, INT_MAX);
		attr->max_mcast_qp_attach = min_t(u32, limits->max_mcast_qps, INT_MAX);
		attr->max_total_mcast_qp_attach =
			min_t(u64, (u64)limits->max_mcast_groups * limits->max_mcast_qps, INT_MAX);
	}
	if (skua_has(dev, SKUA_F_SRQ)) {
		attr->max_srq = min_t(u32, limits->max_srq, INT_MAX);
		attr->max_srq_wr = min_t(u32, limits->max_srq_entries, INT_MAX);
		attr->max_srq_sge = limits->max_recv_sge;
		attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
	}
	if (skua_has(dev, SKUA_F_CQ_MODER)) {
		attr->cq_caps.max_cq_moderation_count = U16_MAX;
		attr->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	if (skua_has(dev, SKUA_F_MW)) {
		attr->max_mw = min_t(u32, limits->max_mw, INT_MAX);
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
	}
	if (skua_has(dev, SKUA_F_ON_DEMAND)) {
		attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
		skua_ib_odp_caps(dev, &attr->odp_caps);
	}
	if (limits->flush_caps & SKUA_FLUSH_GLOBAL)
		attr->device_cap_flags |= IB_DEVICE_FLUSH_GLOBAL;
	if (limits->flush_caps & SKUA_FLUSH_PERSISTENT)
		attr->device_cap_flags |= IB_DEVICE_FLUSH_PERSISTENT;
	if (skua_has(dev, SKUA_F_ATOMIC_WRITE))
		attr->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
	if (skua_ib_has_xrc(dev))
		attr->device_cap_flags |= IB_DEVICE_XRC;
	if (skua_ib_has_tags(dev))
		skua_ib_tag_caps(dev, &attr->tm_caps);
	attr->max_dm_size = skua_ib_max_dm(dev);
	if (skua_ib_has_raw_packet(dev)) {
		attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
		attr->max_raw_ethy_qp = attr->max_qp;
		attr->max_wq_type_rq = attr->max_qp;
		attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
		attr->rss_caps.max_rwq_indirection_tables = limits->max_rss;
		attr->rss_caps.max_rwq_indirection_table_size = BIT(SKUA_RSS_MAX_LOG);
		if (skua_ib_has_raw_csum(dev)) {
			attr->device_cap_flags |= IB_DEVICE_RAW_IP_CSUM;
			attr->raw_packet_caps |= IB_RAW_PACKET_CAP_IP_CSUM;
		}
		if (skua_ib_has_strip_cvlan(dev))
			attr->raw_packet_caps |= IB_RAW_PACKET_CAP_CVLAN_STRIPPING;
	}
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = limits->clock_khz;

	if (!udata)
		return 0;
	skua_ib_rate_caps(dev, &resp);
	return ib_respond_udata(udata, resp);
}

void skua_ib_get_fw_str(struct ib_device *ibdev, char *str)
{
	u32 version = to_skua_dev(ibdev)->limits.fw_version;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", version >> 16, version & 0xffff);
}
