/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The driver is written to the RDMA interfaces of Linux 7.2. This is what 6.12 lacks of them. It
 * knows nothing of the driver: where 6.12 asks the driver for something else, a macro says so.
 */
#ifndef SKUA_IB_COMPAT_H
#define SKUA_IB_COMPAT_H

#include <linux/uaccess.h>
#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>
#include <rdma/rdma_counter.h>
#include <rdma/uverbs_ioctl.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)

/* The core does not tell of the port's state: port.c does. */
#define SKUA_IB_OLD_PORT_EVENTS	1

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)

/* User and kernel CQs come by one verb; reg_user_mr has no DMA handle. See main.c. */
#define SKUA_IB_OLD_VERBS	1

struct ib_dmah;

static inline int skua_ib_copy_udata(void *req, size_t size, size_t min, struct ib_udata *udata)
{
	int err;

	if (udata->inlen < min)
		return -EINVAL;
	err = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

#define ib_copy_validate_udata_in_cm(udata, req, end, valid)				\
({											\
	int __err = skua_ib_copy_udata(&(req), sizeof(req),				\
				       offsetofend(typeof(req), end), udata);		\
											\
	if (!__err && (req).comp_mask & ~(valid))					\
		__err = -EOPNOTSUPP;							\
	__err;										\
})

static inline int skua_ib_respond(struct ib_udata *udata, const void *resp, size_t size)
{
	size_t len = min(size, udata->outlen);

	if (copy_to_user(udata->outbuf, resp, len) ||
	    clear_user(udata->outbuf + len, udata->outlen - len))
		return -EFAULT;
	return 0;
}

#define ib_respond_udata(udata, resp)	skua_ib_respond(udata, &(resp), sizeof(resp))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	char none;

	if (!udata || !udata->inlen)
		return 0;
	return skua_ib_copy_udata(&none, 0, 0, udata);
}

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	if (udata && udata->outlen && clear_user(udata->outbuf, udata->outlen))
		return -EFAULT;
	return 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int err = ib_is_udata_in_empty(udata);

	return err ?: ib_respond_empty_udata(udata);
}

static inline struct ib_umem *ib_umem_get_va(struct ib_device *ibdev, unsigned long addr,
					     size_t size, int access)
{
	return ib_umem_get(ibdev, addr, size, access);
}

/* The core passes them on, whether it knows them or not. */
#define IB_ODP_SUPPORT_FLUSH		BIT(6)
#define IB_ODP_SUPPORT_ATOMIC_WRITE	BIT(7)

/* A QP's counter never shows what the port shows on demand. */
static inline bool skua_ib_counter_has_options(const struct rdma_counter *counter)
{
	return false;
}

/* Buffers are always user addresses: these attributes, by the numbers of 7.2, are never there. */
#define UVERBS_ATTR_CREATE_QP_BUF_UMEM		15
#define UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM	16
#define UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM	17

static inline struct ib_umem *
ib_umem_get_attr_or_va(struct ib_device *ibdev, const struct uverbs_attr_bundle *attrs, u16 attr,
		       u64 addr, size_t size, int access)
{
	return ib_umem_get(ibdev, addr, size, access);
}

static inline struct ib_umem *
ib_umem_get_cq_buf_or_va(struct ib_device *ibdev, const struct uverbs_attr_bundle *attrs,
			 u64 addr, size_t size, int access)
{
	return ib_umem_get(ibdev, addr, size, access);
}

#else

static inline bool skua_ib_counter_has_options(const struct rdma_counter *counter)
{
	return counter->mode.bind_opcnt;
}

#endif

#endif /* SKUA_IB_COMPAT_H */
