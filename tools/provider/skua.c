// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libskua: how libibverbs finds the device, and what a context holds: the doorbell page, the
 * information page and the limits.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <util/util.h>

#include "compat.h"
#include "skua.h"
#include "skua-abi.h"

static int skua_query_device_ex(struct ibv_context *ibv_ctx,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t attr_size)
{
	const struct skua_context *ctx = to_skua_context(ibv_ctx);
	struct skua_cmd_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t fw_ver;
	int err;

	err = ibv_cmd_query_device_any(ibv_ctx, input, attr, attr_size, &resp.ibv_resp, &resp_size);
	if (err)
		return err;

	if (!(SKUA_HOST_FEATURES >> SKUA_F_ATOMIC & 1))
		attr->orig_attr.atomic_cap = IBV_ATOMIC_NONE;
	if (attr_size >= offsetofend(struct ibv_device_attr_ex, tso_caps) && skua_has_tso(ctx)) {
		attr->tso_caps.max_tso = ctx->caps.max_tso;
		attr->tso_caps.supported_qpts = 1 << IBV_QPT_RAW_PACKET;
	}
	if (attr_size >= offsetofend(struct ibv_device_attr_ex, rss_caps) && attr->rss_caps.supported_qpts) {
		attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
		attr->rss_caps.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
			IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP |
			IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
	}
	if (attr_size >= offsetofend(struct ibv_device_attr_ex, packet_pacing_caps))
		attr->packet_pacing_caps = (struct ibv_packet_pacing_caps) {
			.qp_rate_limit_min = resp.min_rate,
			.qp_rate_limit_max = resp.max_rate,
			.supported_qpts = resp.rate_qpts,
		};
	fw_ver = resp.ibv_resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u",
		 (unsigned int)(fw_ver >> 16) & 0xffff, (unsigned int)fw_ver & 0xffff);
	return 0;
}

static int skua_query_port(struct ibv_context *ibv_ctx, uint8_t port,
			   struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd = {};

	return ibv_cmd_query_port(ibv_ctx, port, attr, &cmd, sizeof(cmd));
}

static void skua_free_context(struct ibv_context *ibv_ctx)
{
	struct skua_context *ctx = to_skua_context(ibv_ctx);

	munmap((void *)ctx->info, ctx->caps.info_page_size);
	munmap(ctx->db, ctx->caps.db_page_size);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

#define SKUA_VALUES	IBV_VALUES_MASK_RAW_CLOCK

static int skua_query_rt_values(struct ibv_context *ibv_ctx, struct ibv_values_ex *values)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, SKUA_IB_METHOD_QUERY_CLOCK, 1);
	uint64_t cycles;
	int err;

	if (values->comp_mask & ~SKUA_VALUES)
		return EOPNOTSUPP;
	if (!(values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return 0;
	fill_attr_out_ptr(cmd, SKUA_IB_ATTR_QUERY_CLOCK_RESP_CYCLES, &cycles);
	err = execute_ioctl(ibv_ctx, cmd);
	if (err)
		return err;
	/* Cycles, as others have it. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = cycles;
	return 0;
}

static const struct verbs_context_ops skua_context_ops = {
	.advise_mr = skua_advise_mr,
	.alloc_dm = skua_alloc_dm,
	.alloc_mw = skua_alloc_mw,
	.alloc_parent_domain = skua_alloc_parent_domain,
	.alloc_pd = skua_alloc_pd,
	.alloc_td = skua_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = skua_bind_mw,
	.close_xrcd = skua_close_xrcd,
	.cq_event = skua_cq_event,
	.create_ah = skua_create_ah,
	.create_cq = skua_create_cq,
	.create_cq_ex = skua_create_cq_ex,
	.create_flow = skua_create_flow,
	.create_qp = skua_create_qp,
	.create_qp_ex = skua_create_qp_ex,
	.create_rwq_ind_table = skua_create_rwq_ind_table,
	.create_srq = skua_create_srq,
	.create_srq_ex = skua_create_srq_ex,
	.create_wq = skua_create_wq,
	.dealloc_mw = skua_dealloc_mw,
	.dealloc_pd = skua_dealloc_pd,
	.dealloc_td = skua_dealloc_td,
	.dereg_mr = skua_dereg_mr,
	.destroy_ah = skua_destroy_ah,
	.destroy_cq = skua_destroy_cq,
	.destroy_flow = skua_destroy_flow,
	.destroy_qp = skua_destroy_qp,
	.destroy_rwq_ind_table = skua_destroy_rwq_ind_table,
	.destroy_srq = skua_destroy_srq,
	.destroy_wq = skua_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = skua_free_context,
	.free_dm = skua_free_dm,
	.get_srq_num = skua_get_srq_num,
	.import_dm = skua_import_dm,
	.import_mr = skua_import_mr,
	.import_pd = skua_import_pd,
	.modify_cq = skua_modify_cq,
	.modify_qp = skua_modify_qp,
	.modify_qp_rate_limit = skua_modify_qp_rate_limit,
	.modify_srq = skua_modify_srq,
	.modify_wq = skua_modify_wq,
	.open_qp = skua_open_qp,
	.open_xrcd = skua_open_xrcd,
	.poll_cq = skua_poll_cq,
	.post_recv = skua_post_recv,
	.post_send = skua_post_send,
	.post_srq_recv = skua_post_srq_recv,
	.query_device_ex = skua_query_device_ex,
	.query_ece = skua_query_ece,
	.query_port = skua_query_port,
#ifdef SKUA_QUERY_PORT_SPEED
	.query_port_speed = ibv_cmd_query_port_speed,
#endif
	.query_qp = skua_query_qp,
	.query_qp_data_in_order = skua_query_qp_data_in_order,
	.query_rt_values = skua_query_rt_values,
	.query_srq = skua_query_srq,
	.reg_dm_mr = skua_reg_dm_mr,
	.reg_dmabuf_mr = skua_reg_dmabuf_mr,
	.reg_mr = skua_reg_mr,
	.req_notify_cq = skua_req_notify_cq,
	.rereg_mr = skua_rereg_mr,
	.resize_cq = skua_resize_cq,
	.set_ece = skua_set_ece,
	.unimport_dm = skua_unimport_dm,
	.unimport_mr = skua_unimport_mr,
	.unimport_pd = skua_unimport_pd,
};

/* With tag matching. */
static const struct verbs_context_ops skua_tm_context_ops = {
	.post_srq_ops = skua_post_srq_ops,
};

/* Map what the kernel told of in ctx->caps. 0 or -1 with errno. */
static int skua_map_context(struct skua_context *ctx, int cmd_fd)
{
	void *info;

	ctx->caps.features &= SKUA_HOST_FEATURES;
	ctx->event_idx = ctx->caps.features >> SKUA_F_EVENT_IDX & 1;
	ctx->locked_is_full = skua_locked_is_full();
	if (ctx->caps.db_page_size < SKUA_PAGE_SIZE ||
	    ctx->caps.info_page_size < sizeof(*ctx->info)) {
		verbs_err(&ctx->vctx, "the kernel's pages are too small: %u and %u bytes\n",
			  ctx->caps.db_page_size, ctx->caps.info_page_size);
		errno = EPROTO;
		return -1;
	}

	ctx->db = mmap(NULL, ctx->caps.db_page_size, PROT_WRITE, MAP_SHARED, cmd_fd,
		       ctx->caps.db_page_key);
	if (ctx->db == MAP_FAILED) {
		verbs_err(&ctx->vctx, "cannot map the doorbell page, errno %d\n", errno);
		return -1;
	}
	info = mmap(NULL, ctx->caps.info_page_size, PROT_READ, MAP_SHARED, cmd_fd,
		    ctx->caps.info_page_key);
	if (info == MAP_FAILED) {
		verbs_err(&ctx->vctx, "cannot map the information page, errno %d\n", errno);
		munmap(ctx->db, ctx->caps.db_page_size);
		return -1;
	}
	ctx->info = info;
	return 0;
}

/* Have the kernel fill in ctx->caps. 0 or not. */
static int skua_cmd_alloc_context(struct skua_context *ctx)
{
	struct skua_cmd_alloc_ucontext_resp resp = {};
	struct ibv_get_context cmd = {};
	int err;

	err = skua_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	ctx->caps = resp.drv_payload;
	return err;
}

/* The same for a context that another process made. */
static int skua_cmd_query_context(struct skua_context *ctx)
{
	DECLARE_COMMAND_BUFFER_LINK(attrs, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1,
				    NULL);

	fill_attr_out_ptr(attrs, SKUA_IB_ATTR_QUERY_CONTEXT_RESP, &ctx->caps);
	return ibv_cmd_query_context(&ctx->vctx.context, attrs);
}

static struct verbs_context *skua_make_context(struct ibv_device *ibv_dev, int cmd_fd,
					       int (*get)(struct skua_context *ctx))
{
	struct skua_context *ctx;

	ctx = verbs_init_and_alloc_context(ibv_dev, cmd_fd, ctx, vctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	if (get(ctx) || skua_map_context(ctx, cmd_fd)) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		return NULL;
	}
	verbs_set_ops(&ctx->vctx, &skua_context_ops);
	if (skua_has_tags(ctx))
		verbs_set_ops(&ctx->vctx, &skua_tm_context_ops);
	return &ctx->vctx;
}

static struct verbs_context *skua_alloc_context(struct ibv_device *ibv_dev, int cmd_fd,
						void *private_data)
{
	return skua_make_context(ibv_dev, cmd_fd, skua_cmd_alloc_context);
}

static struct verbs_context *skua_import_context(struct ibv_device *ibv_dev, int cmd_fd)
{
	return skua_make_context(ibv_dev, cmd_fd, skua_cmd_query_context);
}

static struct verbs_device *skua_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct skua_device *dev;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;

	dev->page_size = sysconf(_SC_PAGESIZE);
	return &dev->vdev;
}

static void skua_uninit_device(struct verbs_device *vdev)
{
	free(to_skua_device(&vdev->device));
}

/* Found by PCI id: there is no driver id of its own. */
static const struct verbs_match_ent skua_match_table[] = {
	VERBS_PCI_MATCH(SKUA_PCI_VENDOR_ID, SKUA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops skua_dev_ops = {
	.name = "skua",
	.match_min_abi_version = SKUA_ABI_VERSION,
	.match_max_abi_version = SKUA_ABI_VERSION,
	.match_table = skua_match_table,
	.alloc_device = skua_alloc_device,
	.uninit_device = skua_uninit_device,
	.alloc_context = skua_alloc_context,
	.import_context = skua_import_context,
};
PROVIDER_DRIVER(skua, skua_dev_ops);
