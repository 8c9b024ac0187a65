// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * skua.ko: binding to the PCI function, and letting go of it.
 */
#include <linux/dma-mapping.h>
#include <linux/dmapool.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include "cmd.h"
#include "devlink.h"
#include "netdev.h"
#include "rdma.h"
#include "regs.h"
#include "skua.h"

#define SKUA_BARS	(BIT(SKUA_BAR_REGS) | BIT(SKUA_BAR_DOORBELL))

/* Until the device has said otherwise (CMD-7). */
#define SKUA_CMD_TIMEOUT	(5 * HZ)

struct workqueue_struct *skua_wq;

static struct skua_nic *skua_nic_alloc(struct pci_dev *pdev)
{
	struct devlink *devlink;
	struct skua_nic *nic;

	devlink = devlink_alloc(&skua_devlink_ops, sizeof(*nic), &pdev->dev);
	if (!devlink)
		return NULL;
	nic = devlink_priv(devlink);
	nic->dev.pdev = pdev;
	nic->cmd_timeout = SKUA_CMD_TIMEOUT;
	xa_init_flags(&nic->cqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&nic->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&nic->srqs, XA_FLAGS_LOCK_IRQ);
	ida_init(&nic->db_ids);
	BLOCKING_INIT_NOTIFIER_HEAD(&nic->notifier);
	mutex_init(&nic->port.lock);
	mutex_init(&nic->clock_lock);
	mutex_init(&nic->fault_lock);
	skua_health_init(nic);
	skua_reporter_init(nic);
	return nic;
}

static void skua_nic_free(struct skua_nic *nic)
{
	WARN_ON(!xa_empty(&nic->cqs));
	WARN_ON(!xa_empty(&nic->qps));
	WARN_ON(!xa_empty(&nic->srqs));
	WARN_ON(!ida_is_empty(&nic->db_ids));
	ida_destroy(&nic->db_ids);
	mutex_destroy(&nic->fault_lock);
	mutex_destroy(&nic->clock_lock);
	mutex_destroy(&nic->port.lock);
	devlink_free(priv_to_devlink(nic));
}

static int skua_bars_map(struct skua_nic *nic)
{
	struct pci_dev *pdev = nic->dev.pdev;
	int err;

	if (pci_resource_len(pdev, SKUA_BAR_REGS) < SKUA_BAR_REGS_SIZE ||
	    pci_resource_len(pdev, SKUA_BAR_DOORBELL) < SKUA_DB_PAGES_SIZE) {
		dev_err(&pdev->dev, "BARs are too small\n");
		return -ENODEV;
	}
	err = pci_request_selected_regions(pdev, SKUA_BARS, SKUA_NAME);
	if (err)
		return err;
	nic->regs = pci_iomap(pdev, SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE);
	if (!nic->regs) {
		err = -ENOMEM;
		goto err_regions;
	}
	nic->dev.db = pci_iomap(pdev, SKUA_BAR_DOORBELL, SKUA_PAGE_SIZE);
	if (!nic->dev.db) {
		err = -ENOMEM;
		goto err_regs;
	}
	return 0;

err_regs:
	pci_iounmap(pdev, nic->regs);
err_regions:
	pci_release_selected_regions(pdev, SKUA_BARS);
	return err;
}

static void skua_bars_unmap(struct skua_nic *nic)
{
	pci_iounmap(nic->dev.pdev, nic->dev.db);
	pci_iounmap(nic->dev.pdev, nic->regs);
	pci_release_selected_regions(nic->dev.pdev, SKUA_BARS);
}

/* What the kernel's own queues need; what RDMA needs besides, skua_ib checks. */
static int skua_limits_check(struct skua_nic *nic)
{
	const struct skua_limits *limits = &nic->dev.limits;
	struct pci_dev *pdev = nic->dev.pdev;
	const struct {
		const char *name;
		u64 value;
		u64 min;
	} needs[] = {
		{ "num_ports", limits->num_ports, 1 },
		{ "cmd_timeout", limits->cmd_timeout, 1 },
		{ "clock_khz", limits->clock_khz, 1 },
		{ "num_db_pages", limits->num_db_pages, 1 },
		{ "max_eq", limits->max_eq, skua_has(&nic->dev, SKUA_F_ON_DEMAND) ? 3 : 2 },
		{ "max_eqe", limits->max_eqe, 2 },
		{ "max_pd", limits->max_pd, 1 },
		{ "max_cq", limits->max_cq, 1 },
		{ "max_qp", limits->max_qp, 1 },
		{ "max_cqe", limits->max_cqe, 64 },
		{ "max_sq_blocks", limits->max_sq_blocks, 64 },
		{ "max_rq_entries", limits->max_rq_entries, 16 },
		{ "max_send_sge", limits->max_send_sge, 2 },
		{ "max_recv_sge", limits->max_recv_sge, 1 },
		{ "max_pages", limits->max_pages, 16 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		if (needs[i].value >= needs[i].min)
			continue;
		dev_err(&pdev->dev, "limit %s is %llu, at least %llu is needed\n", needs[i].name,
			needs[i].value, needs[i].min);
		return -ENODEV;
	}
	if (pci_resource_len(pdev, SKUA_BAR_DOORBELL) / SKUA_PAGE_SIZE < limits->num_db_pages) {
		dev_err(&pdev->dev, "limit num_db_pages is %u, more than its BAR holds\n",
			limits->num_db_pages);
		return -ENODEV;
	}
	return 0;
}

/* From reset to a device that answers commands, and whose limits will do. */
static int skua_bring_up(struct skua_nic *nic)
{
	int err;

	err = skua_regs_reset(nic);
	if (err)
		return err;
	nic->port.flags = 0;
	err = skua_regs_negotiate(nic);
	if (err)
		return err;

	nic->dbr_pool = dma_pool_create(SKUA_NAME "-dbr", skua_nic_device(nic),
					sizeof(struct skua_dbr), sizeof(struct skua_dbr), 0);
	if (!nic->dbr_pool)
		return -ENOMEM;
	err = skua_cmdq_init(nic);
	if (err)
		goto err_pool;

	pci_set_master(nic->dev.pdev);
	err = skua_regs_enable(nic);
	if (err)
		goto err_reset;
	err = skua_cmd_query_device(nic, &nic->dev.limits);
	if (err) {
		dev_err(skua_nic_device(nic), "QUERY_DEVICE failed, error %d\n", err);
		goto err_reset;
	}
	err = skua_limits_check(nic);
	if (err)
		goto err_reset;
	nic->cmd_timeout = nic->dev.limits.cmd_timeout * HZ;
	return 0;

err_reset:
	skua_health_stop(nic);
	skua_regs_reset(nic);
	pci_clear_master(nic->dev.pdev);
	skua_cmdq_destroy(nic);
err_pool:
	dma_pool_destroy(nic->dbr_pool);
	return err;
}

static void skua_shut_down(struct skua_nic *nic)
{
	skua_health_stop(nic);
	skua_regs_reset(nic);
	pci_clear_master(nic->dev.pdev);
	skua_cmdq_destroy(nic);
	dma_pool_destroy(nic->dbr_pool);
}

/*
 * From a function in reset to a NIC that is in use. The netdev is made, or, after a reset from
 * outside, has its device back.
 */
static int skua_start(struct skua_nic *nic)
{
	bool first = !nic->dev.netdev;
	int err;

	err = skua_regs_identify(nic);
	if (err)
		return err;
	skua_health_revive(nic);
	err = skua_bring_up(nic);
	if (err)
		return err;
	err = skua_eqs_create(nic);
	if (err)
		goto err_shut_down;
	err = first ? skua_netdev_create(nic) : skua_netdev_attach(nic);
	if (err)
		goto err_eqs;
	err = skua_rdma_add(nic);
	if (err)
		goto err_netdev;
	skua_health_start(nic);
	return 0;

err_netdev:
	if (first)
		skua_netdev_destroy(nic);
	else
		skua_netdev_detach(nic);
err_eqs:
	skua_eqs_destroy(nic);
err_shut_down:
	skua_netdev_link_stop(nic);
	skua_shut_down(nic);
	return err;
}

/* All but what the kernel does for the PCI function; and the reverse. */
static int skua_attach(struct skua_nic *nic)
{
	int err;

	err = skua_devlink_params_register(nic);
	if (err)
		return err;
	err = skua_reporter_create(nic);
	if (err)
		goto err_params;
	err = skua_start(nic);
	if (err)
		goto err_reporter;
	devl_register(priv_to_devlink(nic));
	return 0;

err_reporter:
	skua_reporter_destroy(nic);
err_params:
	skua_devlink_params_unregister(nic);
	return err;
}

static void skua_detach(struct skua_nic *nic)
{
	devl_unregister(priv_to_devlink(nic));
	skua_rdma_remove(nic);
	skua_netdev_destroy(nic);
	if (!nic->halted) {
		skua_eqs_destroy(nic);
		skua_shut_down(nic);
	}
	skua_reporter_destroy(nic);
	skua_devlink_params_unregister(nic);
}

static int skua_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct devlink *devlink;
	struct skua_nic *nic;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return dev_err_probe(&pdev->dev, err, "cannot be enabled\n");
	nic = skua_nic_alloc(pdev);
	if (!nic) {
		err = -ENOMEM;
		goto err_disable;
	}
	pci_set_drvdata(pdev, nic);
	skua_debugfs_create(nic);
	err = skua_bars_map(nic);
	if (err)
		goto err_debugfs;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_bars;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);

	devlink = priv_to_devlink(nic);
	devl_lock(devlink);
	err = skua_attach(nic);
	devl_unlock(devlink);
	if (err)
		goto err_bars;
	skua_reporter_start(nic);
	return 0;

err_bars:
	skua_bars_unmap(nic);
err_debugfs:
	skua_debugfs_destroy(nic);
	skua_nic_free(nic);
err_disable:
	pci_disable_device(pdev);
	return err;
}

static void skua_remove(struct pci_dev *pdev)
{
	struct skua_nic *nic = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(nic);

	skua_reporter_stop(nic);
	devl_lock(devlink);
	skua_detach(nic);
	devl_unlock(devlink);
	skua_bars_unmap(nic);
	skua_debugfs_destroy(nic);
	skua_nic_free(nic);
	pci_disable_device(pdev);
}

/* Before another kernel starts: nothing writes to memory any more, whoever recovers the device. */
static void skua_shutdown(struct pci_dev *pdev)
{
	struct skua_nic *nic = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(nic);

	skua_reporter_stop(nic);
	devl_lock(devlink);
	nic->shut_down = true;
	skua_health_dead(nic, "the machine is shut down");
	skua_health_stop(nic);
	pci_clear_master(pdev);
	devl_unlock(devlink);
}

/*
 * A reset from outside (function level, of the bus) takes all objects away, and so does a machine
 * that sleeps. All that users made goes before, as if the driver were unbound; but the netdev
 * stays, without a device, and has it back afterwards, and RDMA is offered anew. It is also how a
 * device that died by itself is put to use again, and how devlink reloads it.
 */
void skua_halt(struct skua_nic *nic, const char *why)
{
	nic->expected = true;
	if (nic->halted)
		return;
	/* While the device works: the CM tells peers that their connections end. */
	skua_rdma_remove(nic);
	skua_health_dead(nic, why);
	skua_health_stop(nic);
	skua_netdev_detach(nic);
	skua_eqs_destroy(nic);
	skua_shut_down(nic);
	nic->halted = true;
}

int skua_go_on(struct skua_nic *nic, const char *after)
{
	struct device *device = skua_nic_device(nic);
	int err;

	err = nic->shut_down ? -ESHUTDOWN : skua_start(nic);
	if (err) {
		skua_health_bury(nic);
		dev_err(device, "cannot be used after its %s, error %d\n", after, err);
	} else {
		dev_info(device, "is in use again after its %s\n", after);
	}
	nic->halted = err;
	nic->expected = false;
	skua_reporter_update(nic);
	return err;
}

static void skua_halt_locked(struct skua_nic *nic, const char *why)
{
	struct devlink *devlink = priv_to_devlink(nic);

	devl_lock(devlink);
	skua_halt(nic, why);
	devl_unlock(devlink);
}

static int skua_go_on_locked(struct skua_nic *nic, const char *after)
{
	struct devlink *devlink = priv_to_devlink(nic);
	int err;

	devl_lock(devlink);
	err = skua_go_on(nic, after);
	devl_unlock(devlink);
	return err;
}

static void skua_reset_prepare(struct pci_dev *pdev)
{
	skua_halt_locked(pci_get_drvdata(pdev), "it is about to be reset");
}

static void skua_reset_done(struct pci_dev *pdev)
{
	skua_go_on_locked(pci_get_drvdata(pdev), "reset");
}

static int skua_suspend(struct device *device)
{
	skua_halt_locked(dev_get_drvdata(device), "the machine is about to sleep");
	return 0;
}

static int skua_resume(struct device *device)
{
	return skua_go_on_locked(dev_get_drvdata(device), "sleep");
}

static DEFINE_SIMPLE_DEV_PM_OPS(skua_pm_ops, skua_suspend, skua_resume);

static const struct pci_error_handlers skua_err_handler = {
	.reset_prepare = skua_reset_prepare,
	.reset_done = skua_reset_done,
};

static const struct pci_device_id skua_ids[] = {
	{ PCI_DEVICE(SKUA_PCI_VENDOR_ID, SKUA_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, skua_ids);

static struct pci_driver skua_driver = {
	.name = SKUA_NAME,
	.id_table = skua_ids,
	.probe = skua_probe,
	.remove = skua_remove,
	.shutdown = skua_shutdown,
	.err_handler = &skua_err_handler,
	.driver.pm = pm_sleep_ptr(&skua_pm_ops),
};

static int __init skua_init(void)
{
	int err;

	skua_wq = alloc_workqueue(SKUA_NAME, WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!skua_wq)
		return -ENOMEM;
	skua_debugfs_init();
	err = pci_register_driver(&skua_driver);
	if (err) {
		skua_debugfs_exit();
		destroy_workqueue(skua_wq);
	}
	return err;
}
module_init(skua_init);

static void __exit skua_exit(void)
{
	pci_unregister_driver(&skua_driver);
	skua_debugfs_exit();
	destroy_workqueue(skua_wq);
}
module_exit(skua_exit);

MODULE_DESCRIPTION("Skua Ethernet and RDMA NIC");
MODULE_LICENSE("Dual BSD/GPL");
