// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the QPs of a device share.
 */
#include "roce/roce.h"

#include <stdlib.h>
#include <string.h>

bool roce_create(struct skua_dev *dev)
{
	dev->roce = calloc(1, sizeof(*dev->roce));
	if (!dev->roce)
		return false;
	SLIST_INIT(&dev->roce->free_runs);
	return true;
}

void roce_reset(struct skua_dev *dev)
{
	memset(dev->roce->peers, 0, sizeof(dev->roce->peers));
}

void roce_destroy(struct skua_dev *dev)
{
	free(dev->roce);
}
