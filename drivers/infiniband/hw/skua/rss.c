// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive side scaling of raw packets. A work queue of verbs is a raw packet QP of the device that
 * only receives. A QP of verbs that has an indirection table is an RSS object, to which flows lead.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include <linux/skua/command.h>
#include <linux/skua/memory.h>
#include <rdma/skua-abi.h>

#include "cq.h"
#include "pd.h"
#include "qp.h"
#include "rss.h"
#include "skua_ib.h"
#include "ucontext.h"

#define SKUA_IB_HASH_TOEPLITZ	1	/* of verbs' enum ibv_rx_hash_function_flags */

static void skua_ib_wq_event(struct skua_obj_watch *watch, u8 type)
{
	struct skua_ib_wq *wq = container_of(watch, struct skua_ib_wq, watch);
	struct ib_event event = {
		.device = wq->ibwq.device,
		.event = IB_EVENT_WQ_FATAL,
		.element.wq = &wq->ibwq,
	};

	if (type == SKUA_EVENT_QP_FATAL)
		wq->ibwq.event_handler(&event, wq->ibwq.wq_context);
}

/* Flags that a WQ may have: enum ib_wq_flags. */
static u32 skua_ib_wq_flags(const struct skua_dev *dev)
{
	return skua_ib_has_strip_cvlan(dev) ? IB_WQ_FLAGS_CVLAN_STRIPPING : 0;
}

static int skua_ib_wq_check(const struct skua_dev *dev, const struct ib_wq_init_attr *attr)
{
	if (attr->wq_type != IB_WQT_RQ)
		return -EINVAL;
	if (attr->create_flags & ~skua_ib_wq_flags(dev))
		return -EOPNOTSUPP;
	return !attr->max_wr || attr->max_wr > skua_ib_max_qp_wr(dev) ||
	       attr->max_sge > dev->limits.max_recv_sge ? -EINVAL : 0;
}

/* Pin the program's ring, and say what the device is to make of it. */
static int skua_ib_wq_take(struct skua_ib_dev *dev, struct skua_ib_wq *wq,
			   struct skua_qp_params *params, struct ib_udata *udata)
{
	struct skua_ib_ucontext *ucontext =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibucontext);
	struct skua_create_wq_req req;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	if (req.reserved)
		return -EINVAL;
	err = skua_ib_user_rq_take(dev, ucontext, NULL, &wq->mem, req.rq_addr, req.rq_dbr_addr,
				   req.log_rq_size, req.log_rq_stride);
	params->db_page = ucontext->db.index;
	params->handle = req.wq_handle;
	params->log_rq_size = req.log_rq_size;
	params->log_rq_stride = req.log_rq_stride;
	return err;
}

struct ib_wq *skua_ib_create_wq(struct ib_pd *ibpd, struct ib_wq_init_attr *attr,
				struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_ib_dev(ibpd->device);
	const struct skua_ib_qmem none = {};
	struct skua_qp_params params = {
		.type = SKUA_QPT_ETH,
		.pdn = to_skua_ib_pd(ibpd)->pdn,
		.send_cqn = to_skua_ib_cq(attr->cq)->watch.cqn,
		.recv_cqn = to_skua_ib_cq(attr->cq)->watch.cqn,
	};
	struct skua_ib_wq *wq;
	int err;

	err = skua_ib_wq_check(dev->dev, attr);
	if (err)
		return ERR_PTR(err);
	wq = kzalloc(sizeof(*wq), GFP_KERNEL);
	if (!wq)
		return ERR_PTR(-ENOMEM);
	wq->ibwq.device = ibpd->device;
	wq->ibwq.event_handler = attr->event_handler;
	wq->ibwq.wq_context = attr->wq_context;
	mutex_init(&wq->modify_lock);
	wq->watch.event = skua_ib_wq_event;
	wq->strip_cvlan = attr->create_flags & IB_WQ_FLAGS_CVLAN_STRIPPING;

	err = skua_ib_wq_take(dev, wq, &params, udata);
	if (err)
		goto err_free;
	err = skua_ib_queues_start(dev->dev, &wq->watch, &none, &wq->mem, &params);
	if (err)
		goto err_free;
	wq->ibwq.wq_num = wq->watch.number;
	err = ib_respond_empty_udata(udata);
	if (err)
		goto err_stop;
	return &wq->ibwq;

err_stop:
	skua_ib_queues_stop(dev->dev, &wq->watch);
err_free:
	skua_ib_qmem_free(dev->dev, &wq->mem);
	kfree(wq);
	return ERR_PTR(err);
}

static int skua_ib_wq_set(struct skua_ib_wq *wq, u32 mask, const struct skua_qp_attr *hw)
{
	return skua_cmd_modify_qp(to_skua_dev(wq->ibwq.device), wq->watch.number, mask, hw);
}

static int skua_ib_wq_set_state(struct skua_ib_wq *wq, u8 state)
{
	struct skua_qp_attr hw = { .state = state };

	return skua_ib_wq_set(wq, SKUA_QP_ATTR_STATE, &hw);
}

/* It is ready as soon as it receives; nothing is sent from it. */
static int skua_ib_wq_to_ready(struct skua_ib_wq *wq, bool strip)
{
	struct skua_qp_attr hw = { .state = SKUA_QPS_RTR, .strip_cvlan = strip };
	u32 mask = SKUA_QP_ATTR_STATE;
	int err;

	if (strip)
		mask |= SKUA_QP_ATTR_STRIP_CVLAN;
	err = skua_ib_wq_set_state(wq, SKUA_QPS_INIT);
	return err ?: skua_ib_wq_set(wq, mask, &hw);
}

/* It is ready, and stays so. */
static int skua_ib_wq_set_strip(struct skua_ib_wq *wq, bool strip)
{
	struct skua_qp_attr hw = { .strip_cvlan = strip };

	return strip == wq->strip_cvlan ? 0 : skua_ib_wq_set(wq, SKUA_QP_ATTR_STRIP_CVLAN, &hw);
}

static int skua_ib_modify_wq_locked(struct skua_ib_wq *wq, const struct ib_wq_attr *attr, u32 mask,
				    bool strip)
{
	enum ib_wq_state was = wq->ibwq.state;
	enum ib_wq_state next = mask & IB_WQ_STATE ? attr->wq_state : was;

	lockdep_assert_held(&wq->modify_lock);
	if (mask & IB_WQ_CUR_STATE && attr->curr_wq_state != was)
		return -EINVAL;
	if (next == was && next == IB_WQS_RDY)
		return skua_ib_wq_set_strip(wq, strip);
	if (next == was && next != IB_WQS_RESET)
		return 0;
	switch (next) {
	case IB_WQS_RESET:
		return skua_ib_wq_set_state(wq, SKUA_QPS_RESET);
	case IB_WQS_RDY:
		return was == IB_WQS_RESET ? skua_ib_wq_to_ready(wq, strip) : -EINVAL;
	case IB_WQS_ERR:
		return was == IB_WQS_RDY ? skua_ib_wq_set_state(wq, SKUA_QPS_ERR) : -EINVAL;
	default:
		return -EINVAL;
	}
}

int skua_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		      struct ib_udata *udata)
{
	struct skua_ib_wq *wq = to_skua_ib_wq(ibwq);
	bool strip;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mask & IB_WQ_FLAGS && attr->flags_mask & ~skua_ib_wq_flags(to_skua_dev(ibwq->device)))
		return -EOPNOTSUPP;
	mutex_lock(&wq->modify_lock);
	strip = wq->strip_cvlan;
	if (mask & IB_WQ_FLAGS && attr->flags_mask & IB_WQ_FLAGS_CVLAN_STRIPPING)
		strip = attr->flags & IB_WQ_FLAGS_CVLAN_STRIPPING;
	err = skua_ib_modify_wq_locked(wq, attr, mask, strip);
	if (!err) {
		wq->strip_cvlan = strip;
		if (mask & IB_WQ_STATE)
			ibwq->state = attr->wq_state;
	}
	mutex_unlock(&wq->modify_lock);
	return err;
}

int skua_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibwq->device);
	struct skua_ib_wq *wq = to_skua_ib_wq(ibwq);

	skua_ib_queues_stop(dev, &wq->watch);
	skua_ib_qmem_free(dev, &wq->mem);
	kfree(wq);
	return 0;
}

int skua_ib_create_rwq_ind_table(struct ib_rwq_ind_table *ibtable,
				 struct ib_rwq_ind_table_init_attr *attr, struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	return attr->log_ind_tbl_size > SKUA_RSS_MAX_LOG ? -EINVAL : 0;
}

int skua_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtable)
{
	return 0;
}

static int skua_ib_rss_read(struct skua_cmd_create_rss *rss, const struct ib_rwq_ind_table *table,
			    struct ib_udata *udata)
{
	struct skua_create_rss_qp_req req;
	unsigned int i;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, key, 0);
	if (err)
		return err;
	if (req.function != SKUA_IB_HASH_TOEPLITZ || req.fields & ~SKUA_HASH_MASK)
		return -EOPNOTSUPP;
	if (req.key_len != SKUA_RSS_KEY_LEN || req.reserved)
		return -EINVAL;
	*rss = (struct skua_cmd_create_rss) { .log_size = table->log_ind_tbl_size };
	rss->fields = cpu_to_le32(req.fields);
	memcpy(rss->key, req.key, sizeof(rss->key));
	for (i = 0; i < BIT(table->log_ind_tbl_size); i++)
		rss->qpn[i] = cpu_to_le32(table->ind_tbl[i]->wq_num);
	return 0;
}

int skua_ib_create_rss_qp(struct ib_qp *ibqp, const struct ib_qp_init_attr *attr,
			  struct ib_udata *udata)
{
	struct skua_dev *dev = to_skua_dev(ibqp->device);
	struct skua_cmd_create_rss rss;
	int err;

	/* Frames are sent by another QP. */
	if (attr->qp_type != IB_QPT_RAW_PACKET || attr->create_flags || attr->cap.max_send_wr)
		return -EOPNOTSUPP;
	err = skua_ib_rss_read(&rss, attr->rwq_ind_tbl, udata);
	if (err)
		return err;
	err = skua_cmd_create_rss(dev, &rss, &ibqp->qp_num);
	if (err)
		return err;
	err = ib_respond_empty_udata(udata);
	if (err) {
		skua_cmd_destroy_rss(dev, ibqp->qp_num);
		return err;
	}
	/* Its number is not that of a QP, and there is nothing to query. */
	rdma_restrack_no_track(&ibqp->res);
	return 0;
}

void skua_ib_destroy_rss_qp(struct ib_qp *ibqp)
{
	skua_cmd_destroy_rss(to_skua_dev(ibqp->device), ibqp->qp_num);
}
