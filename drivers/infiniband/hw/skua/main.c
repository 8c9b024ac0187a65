// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * skua_ib.ko: binding to the auxiliary device that skua.ko makes, and the table of verbs.
 */
#include <linux/lockdep.h>
#include <linux/module.h>

#include <rdma/skua-abi.h>

#include "ah.h"
#include "cq.h"
#include "dm.h"
#include "dmabuf.h"
#include "flow.h"
#include "flush.h"
#include "mr.h"
#include "mw.h"
#include "odp.h"
#include "pd.h"
#include "qp.h"
#include "restrack.h"
#include "rss.h"
#include "skua_ib.h"
#include "srq.h"
#include "ucontext.h"
#include "xrcd.h"

#ifdef SKUA_IB_OLD_VERBS

static int skua_ib_old_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				 struct uverbs_attr_bundle *attrs)
{
	return attrs ? skua_ib_create_user_cq(ibcq, attr, attrs) :
		       skua_ib_create_cq(ibcq, attr, NULL);
}

/* Consumers in the kernel do not resize. */
static int skua_ib_old_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	if (!udata)
		return -EOPNOTSUPP;
	return cqe < 0 ? -EINVAL : skua_ib_resize_user_cq(ibcq, cqe, udata);
}

static struct ib_mr *skua_ib_old_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					     int access, struct ib_udata *udata)
{
	return skua_ib_reg_user_mr(ibpd, start, length, iova, access, NULL, udata);
}

static struct ib_mr *skua_ib_old_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
						    u64 iova, int fd, int access,
						    struct uverbs_attr_bundle *attrs)
{
	return skua_ib_reg_user_mr_dmabuf(ibpd, offset, length, iova, fd, access, NULL, attrs);
}

static int skua_ib_old_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	return skua_ib_counter_bind_qp(counter, ibqp, counter->port);
}

static int skua_ib_old_counter_unbind_qp(struct ib_qp *ibqp)
{
	return skua_ib_counter_unbind_qp(ibqp, ibqp->counter->port);
}

#endif

/*
 * Verbs that destroy ignore what a program passes with them: an object whose creation cannot be
 * told to its program is destroyed with the udata of the creation, and would stay, with a warning
 * of the core, if that were refused. So there is no uverbs_robust_udata, by which all verbs refuse
 * what they do not know; those that create and modify do. One way to that warning is left: a
 * program guesses the key of an MR before it was told, and binds a window to it, which makes it
 * busy.
 */
static const struct ib_device_ops skua_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = SKUA_ABI_VERSION,

	.add_gid = skua_ib_add_gid,
	.alloc_hw_port_stats = skua_ib_alloc_hw_port_stats,
	.alloc_pd = skua_ib_alloc_pd,
	.alloc_ucontext = skua_ib_alloc_ucontext,
#ifdef SKUA_IB_OLD_VERBS
	.create_cq = skua_ib_old_create_cq,
#else
	.create_cq = skua_ib_create_cq,
	.create_user_cq = skua_ib_create_user_cq,
#endif
	.create_qp = skua_ib_create_qp,
	.dealloc_pd = skua_ib_dealloc_pd,
	.dealloc_ucontext = skua_ib_dealloc_ucontext,
	.del_gid = skua_ib_del_gid,
	.dereg_mr = skua_ib_dereg_mr,
	.destroy_cq = skua_ib_destroy_cq,
	.destroy_qp = skua_ib_destroy_qp,
	.disassociate_ucontext = skua_ib_disassociate_ucontext,
	.fill_res_cq_entry = skua_ib_fill_res_cq_entry,
	.fill_res_mr_entry = skua_ib_fill_res_mr_entry,
	.fill_res_qp_entry = skua_ib_fill_res_qp_entry,
	.fill_res_qp_entry_raw = skua_ib_fill_res_qp_entry_raw,
	.get_dev_fw_str = skua_ib_get_fw_str,
	.get_dma_mr = skua_ib_get_dma_mr,
	.get_hw_stats = skua_ib_get_hw_stats,
	.get_link_layer = skua_ib_get_link_layer,
	.get_port_immutable = skua_ib_get_port_immutable,
	.mmap = skua_ib_mmap,
	.mmap_free = skua_ib_mmap_free,
	.modify_hw_stat = skua_ib_modify_hw_stat,
	.modify_qp = skua_ib_modify_qp,
	.poll_cq = skua_ib_poll_cq,
	.post_destroy_cq = skua_ib_post_destroy_cq,
	.post_recv = skua_ib_post_recv,
	.post_send = skua_ib_post_send,
	.pre_destroy_cq = skua_ib_pre_destroy_cq,
	.process_mad = skua_ib_process_mad,
	.query_device = skua_ib_query_device,
	.query_pkey = skua_ib_query_pkey,
	.query_port = skua_ib_query_port,
#ifndef SKUA_IB_OLD_VERBS
	.query_port_speed = skua_ib_query_port_speed,
#endif
	.query_qp = skua_ib_query_qp,
	.query_ucontext = skua_ib_query_ucontext,
#ifdef SKUA_IB_OLD_VERBS
	.reg_user_mr = skua_ib_old_reg_user_mr,
#else
	.reg_user_mr = skua_ib_reg_user_mr,
#endif
	.req_notify_cq = skua_ib_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, skua_ib_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, skua_ib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, skua_ib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, skua_ib_ucontext, ibucontext),
};

/* With SKUA_F_UD. */
static const struct ib_device_ops skua_ib_ud_ops = {
	.attach_mcast = skua_ib_attach_mcast,
	.create_ah = skua_ib_create_ah,
	.create_user_ah = skua_ib_create_ah,
	.destroy_ah = skua_ib_destroy_ah,
	.detach_mcast = skua_ib_detach_mcast,
	.query_ah = skua_ib_query_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, skua_ib_ah, ibah),
};

/* With fast registration. */
static const struct ib_device_ops skua_ib_fast_reg_ops = {
	.alloc_mr = skua_ib_alloc_mr,
	.map_mr_sg = skua_ib_map_mr_sg,
};

/* With SKUA_F_MR_MODIFY. */
static const struct ib_device_ops skua_ib_mr_modify_ops = {
	.rereg_user_mr = skua_ib_rereg_user_mr,
};

/* With SKUA_F_MR_REVOKE. */
static const struct ib_device_ops skua_ib_dmabuf_ops = {
#ifdef SKUA_IB_OLD_VERBS
	.reg_user_mr_dmabuf = skua_ib_old_reg_user_mr_dmabuf,
#else
	.reg_user_mr_dmabuf = skua_ib_reg_user_mr_dmabuf,
#endif
};

/* With SKUA_F_MW. */
static const struct ib_device_ops skua_ib_mw_ops = {
	.alloc_mw = skua_ib_alloc_mw,
	.dealloc_mw = skua_ib_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, skua_ib_mw, ibmw),
};

/* With SKUA_F_ON_DEMAND. */
static const struct ib_device_ops skua_ib_odp_ops = {
	.advise_mr = skua_ib_advise_mr,
};

/* With SKUA_F_DM. */
static const struct ib_device_ops skua_ib_dm_ops = {
	.alloc_dm = skua_ib_alloc_dm,
	.dealloc_dm = skua_ib_dealloc_dm,
	.reg_dm_mr = skua_ib_reg_dm_mr,
};

/* With SKUA_F_SRQ. */
static const struct ib_device_ops skua_ib_srq_ops = {
	.create_srq = skua_ib_create_srq,
	.destroy_srq = skua_ib_destroy_srq,
	.fill_res_srq_entry = skua_ib_fill_res_srq_entry,
	.fill_res_srq_entry_raw = skua_ib_fill_res_srq_entry_raw,
	.modify_srq = skua_ib_modify_srq,
	.post_srq_recv = skua_ib_post_srq_recv,
	.query_srq = skua_ib_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, skua_ib_srq, ibsrq),
};

/* With SKUA_F_CQ_RESIZE. */
static const struct ib_device_ops skua_ib_cq_resize_ops = {
#ifdef SKUA_IB_OLD_VERBS
	.resize_cq = skua_ib_old_resize_cq,
#else
	.resize_user_cq = skua_ib_resize_user_cq,
#endif
};

/* With SKUA_F_CQ_MODER. */
static const struct ib_device_ops skua_ib_cq_moderation_ops = {
	.modify_cq = skua_ib_modify_cq,
};

/* With XRC. */
static const struct ib_device_ops skua_ib_xrc_ops = {
	.alloc_xrcd = skua_ib_alloc_xrcd,
	.dealloc_xrcd = skua_ib_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, skua_ib_xrcd, ibxrcd),
};

/* With raw packet QPs. */
static const struct ib_device_ops skua_ib_raw_packet_ops = {
	.create_flow = skua_ib_create_flow,
	.create_rwq_ind_table = skua_ib_create_rwq_ind_table,
	.create_wq = skua_ib_create_wq,
	.destroy_flow = skua_ib_destroy_flow,
	.destroy_rwq_ind_table = skua_ib_destroy_rwq_ind_table,
	.destroy_wq = skua_ib_destroy_wq,
	.modify_wq = skua_ib_modify_wq,

	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, skua_ib_rwq_ind_table, ibtable),
};

/* With SKUA_F_COUNTER_SET. */
static const struct ib_device_ops skua_ib_counter_ops = {
	.counter_alloc_stats = skua_ib_counter_alloc_stats,
#ifdef SKUA_IB_OLD_VERBS
	.counter_bind_qp = skua_ib_old_counter_bind_qp,
	.counter_unbind_qp = skua_ib_old_counter_unbind_qp,
#else
	.counter_bind_qp = skua_ib_counter_bind_qp,
	.counter_unbind_qp = skua_ib_counter_unbind_qp,
	.counter_init = skua_ib_counter_init,
	.size_rdma_counter = sizeof(struct rdma_counter),
#endif
	.counter_dealloc = skua_ib_counter_dealloc,
	.counter_update_stats = skua_ib_counter_update_stats,
};

static int skua_ib_notify(struct notifier_block *nb, unsigned long notice, void *data)
{
	struct skua_ib_dev *dev = container_of(nb, struct skua_ib_dev, notifier);

	if (notice == SKUA_NOTICE_DEAD)
		skua_ib_dead(dev);
	return NOTIFY_DONE;
}

/* What RDMA needs of a device besides what its Ethernet needs. */
static int skua_ib_check_limits(struct device *device, const struct skua_limits *limits)
{
	const struct {
		const char *name;
		u64 value;
		u64 min;
	} needs[] = {
		{ "num_db_pages", limits->num_db_pages, 2 * SKUA_DB_PAGES_SIZE / SKUA_PAGE_SIZE },
		{ "max_mr", limits->max_mr, 1 },
		{ "max_mr_size", limits->max_mr_size, SKUA_PAGE_SIZE },
		{ "max_msg_size", limits->max_msg_size, 1 },
		{ "max_rd_atomic", limits->max_rd_atomic, 1 },
		{ "gid_table_len", limits->gid_table_len, 2 },
		{ "pkey_table_len", limits->pkey_table_len, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		if (needs[i].value >= needs[i].min)
			continue;
		dev_err(device, "limit %s is %llu, at least %llu is needed for RDMA\n",
			needs[i].name, needs[i].value, needs[i].min);
		return -ENODEV;
	}
	return 0;
}

static void skua_ib_setup(struct skua_ib_dev *dev)
{
	static struct lock_class_key targets_key;
	struct skua_dev *skua = dev->dev;
	struct ib_device *ibdev = &dev->ibdev;

	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->ucontexts);
	INIT_LIST_HEAD(&dev->cqs);
	xa_init(&dev->qps);
	/* lockdep would take its lock for that of @qps, which is taken with interrupts on. */
	xa_init_flags(&dev->targets, XA_FLAGS_LOCK_IRQ);
	lockdep_set_class(&dev->targets.xa_lock, &targets_key);
	skua_ib_flush_init(dev);
	skua_ib_clock_init(dev);

	/* Programs find their provider by the ids of the parent, a PCI function. */
	ibdev->dev.parent = skua_dma_dev(skua);
	ibdev->node_type = RDMA_NODE_IB_CA;
	memcpy(&ibdev->node_guid, skua->limits.guid, sizeof(ibdev->node_guid));
	strscpy(ibdev->node_desc, "Skua", sizeof(ibdev->node_desc));
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = skua->num_comp_vectors;
	ibdev->local_dma_lkey = skua->limits.reserved_lkey;
	ibdev->driver_def = skua_ib_uapi;
	ib_set_device_ops(ibdev, &skua_ib_ops);
	if (skua_has(skua, SKUA_F_UD))
		ib_set_device_ops(ibdev, &skua_ib_ud_ops);
	if (skua_ib_has_fast_reg(skua))
		ib_set_device_ops(ibdev, &skua_ib_fast_reg_ops);
	if (skua_has(skua, SKUA_F_MR_MODIFY))
		ib_set_device_ops(ibdev, &skua_ib_mr_modify_ops);
	if (skua_has(skua, SKUA_F_MR_REVOKE))
		ib_set_device_ops(ibdev, &skua_ib_dmabuf_ops);
	if (skua_has(skua, SKUA_F_MW))
		ib_set_device_ops(ibdev, &skua_ib_mw_ops);
	if (skua_has(skua, SKUA_F_ON_DEMAND))
		ib_set_device_ops(ibdev, &skua_ib_odp_ops);
	if (skua_has(skua, SKUA_F_DM))
		ib_set_device_ops(ibdev, &skua_ib_dm_ops);
	if (skua_has(skua, SKUA_F_SRQ))
		ib_set_device_ops(ibdev, &skua_ib_srq_ops);
	if (skua_has(skua, SKUA_F_CQ_RESIZE))
		ib_set_device_ops(ibdev, &skua_ib_cq_resize_ops);
	if (skua_has(skua, SKUA_F_CQ_MODER)) {
		ib_set_device_ops(ibdev, &skua_ib_cq_moderation_ops);
		ibdev->use_cq_dim = true;
	}
	if (skua_ib_has_xrc(skua))
		ib_set_device_ops(ibdev, &skua_ib_xrc_ops);
	if (skua_ib_has_raw_packet(skua))
		ib_set_device_ops(ibdev, &skua_ib_raw_packet_ops);
	if (skua_has(skua, SKUA_F_COUNTER_SET))
		ib_set_device_ops(ibdev, &skua_ib_counter_ops);
}

static int skua_ib_register(struct skua_ib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	err = ib_device_set_netdev(ibdev, dev->dev->netdev, 1);
	if (err)
		return err;
	err = skua_port_set_roce(dev->dev, true);
	if (err)
		return err;
	err = ib_register_device(ibdev, "skua_%d", skua_dma_dev(dev->dev));
	if (err)
		goto err_roce;

	mutex_lock(&dev->lock);
	dev->registered = true;
	mutex_unlock(&dev->lock);
	err = skua_ib_port_events_start(dev);
	if (err)
		goto err_unregister;
	return 0;

err_unregister:
	ib_unregister_device(ibdev);
err_roce:
	skua_port_set_roce(dev->dev, false);
	return err;
}

static void skua_ib_unregister(struct skua_ib_dev *dev)
{
	skua_ib_port_events_stop(dev);
	/* Events that are dispatched are done with before the core is. */
	mutex_lock(&dev->lock);
	dev->registered = false;
	mutex_unlock(&dev->lock);
	ib_unregister_device(&dev->ibdev);
	skua_port_set_roce(dev->dev, false);
}

static int skua_ib_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct skua_ib_dev *dev;
	int err;

	err = skua_ib_check_limits(&adev->dev, &to_skua_adev(adev)->dev->limits);
	if (err)
		return err;
	dev = ib_alloc_device(skua_ib_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->dev = to_skua_adev(adev)->dev;
	skua_ib_setup(dev);
	err = skua_ib_odp_init(dev);
	if (err)
		goto err_dealloc;

	/*
	 * Before the device is registered, and until it is unregistered: who waits for a
	 * completion then must learn of its death.
	 */
	dev->notifier.notifier_call = skua_ib_notify;
	err = skua_notifier_register(dev->dev, &dev->notifier);
	if (err)
		goto err_odp;
	err = skua_ib_register(dev);
	if (err)
		goto err_notifier;
	auxiliary_set_drvdata(adev, dev);
	return 0;

err_notifier:
	skua_notifier_unregister(dev->dev, &dev->notifier);
	cancel_work_sync(&dev->flush);
	cancel_delayed_work_sync(&dev->clock);
err_odp:
	skua_ib_odp_cleanup(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return dev_err_probe(&adev->dev, err, "cannot be registered\n");
}

static void skua_ib_remove(struct auxiliary_device *adev)
{
	struct skua_ib_dev *dev = auxiliary_get_drvdata(adev);

	skua_ib_unregister(dev);
	skua_ib_odp_cleanup(dev);
	skua_notifier_unregister(dev->dev, &dev->notifier);
	cancel_work_sync(&dev->flush);
	cancel_delayed_work_sync(&dev->clock);
	WARN_ON(!xa_empty(&dev->qps));
	WARN_ON(!xa_empty(&dev->targets));
	WARN_ON(!list_empty(&dev->cqs));
	WARN_ON(!list_empty(&dev->ucontexts));
	ib_dealloc_device(&dev->ibdev);
}

static const struct auxiliary_device_id skua_ib_ids[] = {
	{ .name = "skua." SKUA_ADEV_RDMA },
	{}
};
MODULE_DEVICE_TABLE(auxiliary, skua_ib_ids);

static struct auxiliary_driver skua_ib_driver = {
	.name = SKUA_ADEV_RDMA,
	.id_table = skua_ib_ids,
	.probe = skua_ib_probe,
	.remove = skua_ib_remove,
};
module_auxiliary_driver(skua_ib_driver);

MODULE_DESCRIPTION("RDMA of Skua NICs");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(SKUA_NS);
