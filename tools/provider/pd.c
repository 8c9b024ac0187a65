// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection domains, thread domains, and parent domains, which join the two. The kernel knows only
 * the first: to it a parent domain is its PD.
 *
 * A thread domain says that one thread at a time uses the queues made with it. They are made without
 * locks then.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "skua.h"
#include "skua-abi.h"

static void skua_td_put(struct skua_td *td)
{
	__atomic_sub_fetch(&td->users, 1, __ATOMIC_RELEASE);
}

void skua_pd_put(struct skua_pd *pd)
{
	/* Whoever left is done with it before it is freed. */
	if (__atomic_sub_fetch(&pd->users, 1, __ATOMIC_ACQ_REL))
		return;
	if (pd->td)
		skua_td_put(pd->td);
	if (pd->contained)
		skua_pd_put(pd->contained);
	free(pd);
}

static struct skua_pd *skua_pd_new(void)
{
	struct skua_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->users = 1;
	return pd;
}

struct ibv_pd *skua_alloc_pd(struct ibv_context *ibv_ctx)
{
	struct skua_cmd_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct skua_pd *pd;
	int err;

	pd = skua_pd_new();
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(ibv_ctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.ibv_resp,
			       sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibv_pd;
}

/* Of another process, which sees to its end. The kernel knows whether there is one. */
struct ibv_pd *skua_import_pd(struct ibv_context *ibv_ctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, SKUA_IB_METHOD_PD_QUERY, 1);
	struct skua_pd *pd;
	int err;

	fill_attr_in_obj(cmd, SKUA_IB_ATTR_PD_QUERY_HANDLE, handle);
	err = execute_ioctl(ibv_ctx, cmd);
	if (err) {
		errno = err;
		return NULL;
	}
	pd = skua_pd_new();
	if (!pd)
		return NULL;
	pd->ibv_pd.context = ibv_ctx;
	pd->ibv_pd.handle = handle;
	return &pd->ibv_pd;
}

/* There is no way to refuse: QPs that were made with it keep it until they go. */
void skua_unimport_pd(struct ibv_pd *ibv_pd)
{
	skua_pd_put(to_skua_pd(ibv_pd));
}

int skua_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct skua_pd *pd = to_skua_pd(ibv_pd);
	int err;

	if (__atomic_load_n(&pd->users, __ATOMIC_RELAXED) > 1) {
		errno = EBUSY;
		return EBUSY;
	}
	if (!pd->contained) {
		err = ibv_cmd_dealloc_pd(ibv_pd);
		if (err)
			return err;
	}
	skua_pd_put(pd);
	return 0;
}

struct ibv_td *skua_alloc_td(struct ibv_context *ibv_ctx, struct ibv_td_init_attr *attr)
{
	struct skua_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ibv_ctx;
	return &td->ibv_td;
}

int skua_dealloc_td(struct ibv_td *ibv_td)
{
	struct skua_td *td = to_skua_td(ibv_td);

	/* Acquire: whoever left is done with it. */
	if (__atomic_load_n(&td->users, __ATOMIC_ACQUIRE)) {
		errno = EBUSY;
		return EBUSY;
	}
	free(td);
	return 0;
}

#define SKUA_PARENT_DOMAIN_MASK (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | \
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct ibv_pd *skua_alloc_parent_domain(struct ibv_context *ibv_ctx,
					struct ibv_parent_domain_init_attr *attr)
{
	struct skua_pd *contained, *pd;

	if (attr->comp_mask & ~SKUA_PARENT_DOMAIN_MASK) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->pd || attr->pd->context != ibv_ctx || to_skua_pd(attr->pd)->contained ||
	    (attr->td && attr->td->context != ibv_ctx) ||
	    (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	     (!attr->alloc || !attr->free))) {
		errno = EINVAL;
		return NULL;
	}
	contained = to_skua_pd(attr->pd);
	pd = skua_pd_new();
	if (!pd)
		return NULL;

	pd->ibv_pd = contained->ibv_pd;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->context = attr->pd_context;
	pd->contained = contained;
	skua_pd_hold(contained);
	if (attr->td) {
		pd->td = to_skua_td(attr->td);
		__atomic_add_fetch(&pd->td->users, 1, __ATOMIC_RELAXED);
	}
	return &pd->ibv_pd;
}
