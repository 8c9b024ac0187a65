// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device's clock, for programs: as it is now, and, in their information pages, what the wall
 * clock said at a moment of it. That is renewed each second while there are programs, because the
 * wall clock is steered and the device's is not.
 */
#include <linux/clocksource.h>
#include <linux/preempt.h>
#include <linux/timekeeping.h>

#include <rdma/skua-abi.h>

#include "skua_ib.h"
#include "ucontext.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static_assert(SKUA_IB_METHOD_QUERY_CLOCK == 1 << UVERBS_ID_NS_SHIFT);

/* Programs reckon over less than this. */
#define SKUA_IB_CLOCK_RANGE_MS	60000

/* Both clocks at a moment. */
static int skua_ib_clock_sample(struct skua_ib_dev *dev, u64 *cycles, u64 *ns)
{
	u64 before = ktime_get_real_ns();
	int err;

	err = skua_read_clock(dev->dev, cycles);
	*ns = before + (s64)(ktime_get_real_ns() - before) / 2;
	return err;
}

static void skua_ib_clock_write(struct skua_info_page *info, u64 cycles, u64 ns)
{
	u32 mult, shift;

	clocks_calc_mult_shift(&mult, &shift, info->clock_khz, NSEC_PER_MSEC,
			       SKUA_IB_CLOCK_RANGE_MS);
	/* Whoever reads waits for the end, and may have the only processor. */
	preempt_disable();
	WRITE_ONCE(info->sequence, info->sequence + 1);
	smp_wmb();	/* before what changes */
	WRITE_ONCE(info->cycles, cycles);
	WRITE_ONCE(info->ns, ns);
	WRITE_ONCE(info->mult, mult);
	WRITE_ONCE(info->shift, shift);
	smp_wmb();	/* after it */
	WRITE_ONCE(info->sequence, info->sequence + 1);
	preempt_enable();
}

static void skua_ib_clock_work(struct work_struct *work)
{
	struct skua_ib_dev *dev = container_of(work, struct skua_ib_dev, clock.work);
	struct skua_ib_ucontext *ucontext;
	u64 cycles, ns;

	mutex_lock(&dev->lock);
	if (dev->dead || list_empty(&dev->ucontexts))
		goto out;
	/* A device that is late, or about to be found dead: what was written before holds. */
	if (!skua_ib_clock_sample(dev, &cycles, &ns))
		list_for_each_entry(ucontext, &dev->ucontexts, node)
			skua_ib_clock_write(skua_ib_info(ucontext), cycles, ns);
	schedule_delayed_work(&dev->clock, HZ);
out:
	mutex_unlock(&dev->lock);
}

void skua_ib_clock_init(struct skua_ib_dev *dev)
{
	INIT_DELAYED_WORK(&dev->clock, skua_ib_clock_work);
}

void skua_ib_clock_start(struct skua_ib_dev *dev, struct skua_ib_ucontext *ucontext)
{
	u64 cycles, ns;

	lockdep_assert_held(&dev->lock);
	if (!skua_ib_clock_sample(dev, &cycles, &ns))
		skua_ib_clock_write(skua_ib_info(ucontext), cycles, ns);
	schedule_delayed_work(&dev->clock, HZ);
}

static int UVERBS_HANDLER(SKUA_IB_METHOD_QUERY_CLOCK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibucontext = ib_uverbs_get_ucontext(attrs);
	u64 cycles;
	int err;

	if (IS_ERR(ibucontext))
		return PTR_ERR(ibucontext);
	err = skua_read_clock(to_skua_dev(ibucontext->device), &cycles);
	if (err)
		return err;
	return uverbs_copy_to(attrs, SKUA_IB_ATTR_QUERY_CLOCK_RESP_CYCLES, &cycles,
			      sizeof(cycles));
}

DECLARE_UVERBS_NAMED_METHOD(SKUA_IB_METHOD_QUERY_CLOCK,
			    UVERBS_ATTR_PTR_OUT(SKUA_IB_ATTR_QUERY_CLOCK_RESP_CYCLES,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

ADD_UVERBS_METHODS(skua_ib_clock_methods, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(SKUA_IB_METHOD_QUERY_CLOCK));

const struct uapi_definition skua_ib_clock_uapi[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &skua_ib_clock_methods),
	{}
};
