// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Multicast: groups, and the UD QPs that receive what is for them (manual: multicast).
 *
 * A group exists while a QP is attached to it. Each attachment is a member of the group's list
 * and of the QP's, so that both find it, and neither is searched when the other goes.
 */
#include <stdlib.h>
#include <string.h>

#include "core/transport.h"

#define DETACH_COST	128

struct mcast_member {
	LIST_ENTRY(mcast_member) of_group, of_qp;
	struct mcast_group *group;
	struct skua_qp *qp;
};

struct mcast_group {
	LIST_ENTRY(mcast_group) entry;
	uint8_t gid[16];
	uint32_t n;
	LIST_HEAD(, mcast_member) members;
};

/* The last bytes are those that differ, and the only ones that are in the MAC. */
static struct mcast_bucket *bucket(struct skua_dev *dev, const uint8_t *gid)
{
	uint32_t v;

	memcpy(&v, gid + 12, sizeof(v));
	return &dev->mcast.bucket[v * 0x9e3779b1u >> (32 - MCAST_LOG_BUCKETS)];
}

static struct mcast_group *find_group(struct skua_dev *dev, const uint8_t *gid)
{
	struct mcast_group *group;

	/* A guest may choose groups that are all in one bucket. */
	LIST_FOREACH(group, bucket(dev, gid), entry) {
		dev->engine->turn -= LOOK_COST;
		if (!memcmp(group->gid, gid, sizeof(group->gid)))
			break;
	}
	return group;
}

static struct mcast_member *find_member(const struct mcast_group *group, const struct skua_qp *qp)
{
	struct mcast_member *m;

	LIST_FOREACH(m, &group->members, of_group)
		if (m->qp == qp)
			return m;
	return NULL;
}

static bool is_group(const uint8_t *gid)
{
	return gid[0] == 0xff || (gid_is_ipv4(gid) && gid[12] >> 4 == 14);
}

static struct mcast_group *create_group(struct skua_dev *dev, const uint8_t *gid)
{
	struct mcast_group *group;

	if (dev->mcast.groups == LIMIT_MCAST_GROUPS)
		return NULL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	memcpy(group->gid, gid, sizeof(group->gid));
	LIST_INIT(&group->members);
	LIST_INSERT_HEAD(bucket(dev, gid), group, entry);
	dev->mcast.groups++;
	return group;
}

static void destroy_group(struct skua_dev *dev, struct mcast_group *group)
{
	LIST_REMOVE(group, entry);
	dev->mcast.groups--;
	free(group);
}

static void detach(struct skua_dev *dev, struct mcast_member *m)
{
	struct mcast_group *group = m->group;

	LIST_REMOVE(m, of_group);
	LIST_REMOVE(m, of_qp);
	free(m);
	if (!--group->n)
		destroy_group(dev, group);
}

bool mcast_forget_qp(struct skua_qp *qp, int32_t *budget)
{
	while (*budget > 0 && !LIST_EMPTY(&qp->groups)) {
		detach(qp->dev, LIST_FIRST(&qp->groups));
		*budget -= DETACH_COST;
	}
	return LIST_EMPTY(&qp->groups);
}

/* What the command at hand names; group and member are NULL where there is none. */
struct named {
	const uint8_t *gid;
	struct skua_qp *qp;
	struct mcast_group *group;
	struct mcast_member *member;
};

static int look_up(struct skua_dev *dev, struct named *named)
{
	const struct skua_cmd_mcast *in = &dev->cmdq.cmd.mcast;

	*named = (struct named){ .gid = in->mgid, .qp = numtab_get(&dev->qps, le32toh(in->qpn)) };
	if (!named->qp)
		return SKUA_CMD_BAD_OBJECT;
	if (named->qp->type != SKUA_QPT_UD || !is_group(named->gid))
		return SKUA_CMD_BAD_PARAM;
	named->group = find_group(dev, named->gid);
	named->member = named->group ? find_member(named->group, named->qp) : NULL;
	return SKUA_CMD_OK;
}

int cmd_attach_mcast(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct named named;
	int status = look_up(dev, &named);
	struct mcast_group *group = named.group;
	struct mcast_member *m;

	(void)cpl;
	if (status || named.member)
		return status;
	if (group && group->n == LIMIT_MCAST_QPS)
		return SKUA_CMD_NO_RESOURCE;
	m = calloc(1, sizeof(*m));
	if (m && !group)
		group = create_group(dev, named.gid);
	if (!m || !group) {
		free(m);
		return SKUA_CMD_NO_RESOURCE;
	}
	m->group = group;
	m->qp = named.qp;
	LIST_INSERT_HEAD(&group->members, m, of_group);
	LIST_INSERT_HEAD(&named.qp->groups, m, of_qp);
	group->n++;
	return SKUA_CMD_OK;
}

int cmd_detach_mcast(struct skua_dev *dev, struct skua_cmd_cpl *cpl)
{
	struct named named;
	int status = look_up(dev, &named);

	(void)cpl;
	if (status)
		return status;
	if (!named.member)
		return SKUA_CMD_BAD_OBJECT;
	detach(dev, named.member);
	return SKUA_CMD_OK;
}

static bool is_mac_of(const uint8_t *mac, const uint8_t *gid)
{
	static const uint8_t ipv4[3] = { 0x01, 0x00, 0x5e }, ipv6[2] = { 0x33, 0x33 };

	if (gid_is_ipv4(gid))
		return !memcmp(mac, ipv4, 3) && mac[3] == (gid[13] & 0x7f) && !memcmp(mac + 4, gid + 14, 2);
	return !memcmp(mac, ipv6, 2) && !memcmp(mac + 2, gid + 12, 4);
}

static bool has_vlan(const struct skua_dev *dev, uint16_t vlan)
{
	for (unsigned int i = 0; i < LIMIT_GID; i++)
		if (dev->gids[i].set && dev->gids[i].vlan == vlan)
			return true;
	return false;
}

struct mcast_group *mcast_find(struct skua_dev *dev, const struct roce_path *path)
{
	if (!(path->dmac[0] & 1) || !dev->mcast.groups || !is_mac_of(path->dmac, path->dgid) ||
	    !has_vlan(dev, path->vlan))
		return NULL;
	return find_group(dev, path->dgid);
}

void mcast_rx(struct skua_dev *dev, const struct mcast_group *group, const struct train *t)
{
	const struct mcast_member *m;

	if (t->transport != TRANSPORT_UD || t->dest_qpn != MCAST_QPN) {
		STAT_INC(dev, rdma_rx_bad_packet);
		return;
	}
	STAT_INC(dev, rdma_rx_mcast);
	LIST_FOREACH(m, &group->members, of_group) {
		engine_charge_copy(dev->engine, t->payload ? t->payload->bytes : 0);
		if (qp_can_receive(m->qp))
			m->qp->ops->rx(m->qp, t);
		else
			STAT_INC(dev, rdma_rx_bad_qp);
	}
}
