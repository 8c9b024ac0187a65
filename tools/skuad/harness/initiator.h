/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The harness for XRC: commands for an initiator and its target.
 */
#ifndef SKUAD_HARNESS_INITIATOR_H
#define SKUAD_HARNESS_INITIATOR_H

#include "harness/harness.h"

/* An initiator with the send queue that the node uses, and a target. */
struct skua_cmd xrc_ini_cmd(struct node *n);
struct skua_cmd xrc_tgt_cmd(uint32_t xrcdn);

/* What other QPs do in RTR and RTS, less what is not for these. The rest of a connection is rtr_cmd() and rts_cmd(). */
struct skua_cmd xrc_ini_rtr_cmd(uint32_t qpn, const struct node *peer, uint32_t target);
struct skua_cmd xrc_tgt_rts_cmd(uint32_t qpn);

#endif /* SKUAD_HARNESS_INITIATOR_H */
