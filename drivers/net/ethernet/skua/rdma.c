// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The auxiliary device that skua_ib binds to. It is there if the device can do RDMA at all, and
 * devlink's parameter enable_rdma is true.
 */
#include <linux/slab.h>

#include "devlink.h"
#include "rdma.h"
#include "skua.h"

static DEFINE_IDA(skua_rdma_ids);

static void skua_rdma_release(struct device *device)
{
	struct skua_adev *rdma = to_skua_adev(to_auxiliary_dev(device));

	ida_free(&skua_rdma_ids, rdma->adev.id);
	kfree(rdma);
}

int skua_rdma_add(struct skua_nic *nic)
{
	struct skua_adev *rdma;
	int id, err;

	if (!skua_has(&nic->dev, SKUA_F_RC) || !skua_devlink_rdma_is_enabled(nic))
		return 0;

	rdma = kzalloc(sizeof(*rdma), GFP_KERNEL);
	if (!rdma)
		return -ENOMEM;
	id = ida_alloc(&skua_rdma_ids, GFP_KERNEL);
	if (id < 0) {
		kfree(rdma);
		return id;
	}

	rdma->dev = &nic->dev;
	rdma->adev.id = id;
	rdma->adev.name = SKUA_ADEV_RDMA;
	rdma->adev.dev.parent = skua_nic_device(nic);
	rdma->adev.dev.release = skua_rdma_release;
	err = auxiliary_device_init(&rdma->adev);
	if (err) {
		ida_free(&skua_rdma_ids, id);
		kfree(rdma);
		return err;
	}
	err = auxiliary_device_add(&rdma->adev);
	if (err) {
		auxiliary_device_uninit(&rdma->adev);
		return err;
	}
	nic->rdma = rdma;
	return 0;
}

void skua_rdma_remove(struct skua_nic *nic)
{
	if (!nic->rdma)
		return;
	auxiliary_device_delete(&nic->rdma->adev);
	auxiliary_device_uninit(&nic->rdma->adev);
	nic->rdma = NULL;
}
