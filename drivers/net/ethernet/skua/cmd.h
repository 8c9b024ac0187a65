/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * skua.ko: commands of its own alone. The others are in linux/skua/command.h.
 */
#ifndef SKUA_NIC_CMD_H
#define SKUA_NIC_CMD_H

#include <linux/skua/command.h>
#include <linux/skua/device.h>

struct skua_nic;

int skua_cmd_query_device(struct skua_nic *nic, struct skua_limits *limits);
int skua_cmd_set_port(struct skua_nic *nic, const struct skua_cmd_set_port *set);
int skua_cmd_set_rss(struct skua_nic *nic, const struct skua_cmd_set_rss *rss);
int skua_cmd_create_eq(struct skua_nic *nic, const struct skua_cmd_create_eq *create, u32 *eqn);
void skua_cmd_destroy_eq(struct skua_nic *nic, u32 eqn);

#endif /* SKUA_NIC_CMD_H */
