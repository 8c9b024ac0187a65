/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How each opcode of verbs becomes a WQE; both ways of posting use it. */
#ifndef SKUA_OP_H
#define SKUA_OP_H

#include <assert.h>
#include <stdbool.h>

#include <infiniband/verbs.h>

#include <skua/regs.h>
#include <skua/wqe.h>

#define SKUA_OP_RDMA	0x01	/* has a remote address segment */
#define SKUA_OP_IMM	0x02	/* carries immediate data */
#define SKUA_OP_INV	0x04	/* names a key to be invalidated */
#define SKUA_OP_DATA	0x08	/* has SGEs */
#define SKUA_OP_INLINE	0x10	/* the data may stand in the WQE */
#define SKUA_OP_ATOMIC	0x20	/* has an atomic segment, and one SGE */

struct skua_op {
	uint8_t wqe;		/* enum skua_wqe_opcode */
	uint8_t flags;		/* SKUA_OP_* */
	uint8_t feature;	/* SKUA_F_* that it needs */
	uint8_t types;		/* SKUA_OP_RC and so on: QPs that serve it */
};

#define SKUA_OP_SENDS	(SKUA_OP_DATA | SKUA_OP_INLINE)

#define SKUA_OP_OF_RC	0x1
#define SKUA_OP_OF_UC	0x2
#define SKUA_OP_OF_UD	0x4
#define SKUA_OP_OF_XRC	0x8	/* XRC_SEND */
#define SKUA_OP_OF_RAW	0x10	/* RAW_PACKET */

#define SKUA_OP_RC	(SKUA_OP_OF_RC | SKUA_OP_OF_XRC)
#define SKUA_OP_RC_UC	(SKUA_OP_RC | SKUA_OP_OF_UC)
#define SKUA_OP_ALL	(SKUA_OP_RC_UC | SKUA_OP_OF_UD)

static const struct skua_op skua_ops[] = {
	[IBV_WR_SEND] = { SKUA_WQE_SEND, SKUA_OP_SENDS, SKUA_F_RC, SKUA_OP_ALL | SKUA_OP_OF_RAW },
	[IBV_WR_SEND_WITH_IMM] = {
		SKUA_WQE_SEND_IMM, SKUA_OP_SENDS | SKUA_OP_IMM, SKUA_F_RC, SKUA_OP_ALL
	},
	[IBV_WR_SEND_WITH_INV] = {
		SKUA_WQE_SEND_INV, SKUA_OP_SENDS | SKUA_OP_INV, SKUA_F_INVALIDATE, SKUA_OP_RC
	},
	[IBV_WR_RDMA_WRITE] = {
		SKUA_WQE_WRITE, SKUA_OP_SENDS | SKUA_OP_RDMA, SKUA_F_RC, SKUA_OP_RC_UC
	},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		SKUA_WQE_WRITE_IMM, SKUA_OP_SENDS | SKUA_OP_RDMA | SKUA_OP_IMM, SKUA_F_RC,
		SKUA_OP_RC_UC
	},
	[IBV_WR_RDMA_READ] = {
		SKUA_WQE_READ, SKUA_OP_DATA | SKUA_OP_RDMA, SKUA_F_RC, SKUA_OP_RC
	},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		SKUA_WQE_CMP_SWAP, SKUA_OP_DATA | SKUA_OP_ATOMIC, SKUA_F_ATOMIC, SKUA_OP_RC
	},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		SKUA_WQE_FETCH_ADD, SKUA_OP_DATA | SKUA_OP_ATOMIC, SKUA_F_ATOMIC, SKUA_OP_RC
	},
	[IBV_WR_LOCAL_INV] = { SKUA_WQE_LOCAL_INV, SKUA_OP_INV, SKUA_F_INVALIDATE, SKUA_OP_RC_UC },
	[IBV_WR_BIND_MW] = { SKUA_WQE_BIND_MW, 0, SKUA_F_MW, SKUA_OP_RC_UC },
	[IBV_WR_FLUSH] = { SKUA_WQE_FLUSH, SKUA_OP_RDMA, SKUA_F_FLUSH, SKUA_OP_OF_RC },
	[IBV_WR_ATOMIC_WRITE] = {
		SKUA_WQE_ATOMIC_WRITE, SKUA_OP_SENDS | SKUA_OP_RDMA, SKUA_F_ATOMIC_WRITE, SKUA_OP_OF_RC
	},
	[IBV_WR_TSO] = { SKUA_WQE_TSO, SKUA_OP_DATA, SKUA_F_TSO, SKUA_OP_OF_RAW },
};

#define SKUA_NUM_OPS	(sizeof(skua_ops) / sizeof(skua_ops[0]))

#define SKUA_RARE_OPS	(1u << IBV_WR_BIND_MW | 1u << IBV_WR_TSO)

static inline uint8_t skua_op_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return SKUA_OP_OF_RC;
	case IBV_QPT_UC:
		return SKUA_OP_OF_UC;
	case IBV_QPT_UD:
		return SKUA_OP_OF_UD;
	case IBV_QPT_XRC_SEND:
		return SKUA_OP_OF_XRC;
	case IBV_QPT_RAW_PACKET:
		return SKUA_OP_OF_RAW;
	default:
		return 0;
	}
}

/* Opcodes that a QP of a device with @features serves, as bits of enum ibv_wr_opcode. */
static inline uint32_t skua_op_mask(uint64_t features, enum ibv_qp_type type)
{
	uint32_t mask = 0;
	unsigned int i;

	for (i = 0; i < SKUA_NUM_OPS; i++)
		if (skua_ops[i].types & skua_op_of(type) && features >> skua_ops[i].feature & 1)
			mask |= 1u << i;
	return mask;
}

/* A WQE's flags of those of verbs, but for IBV_SEND_INLINE, which says where the data is to go. */
static inline uint8_t skua_op_send_flags(unsigned int send_flags)
{
	static_assert(IBV_SEND_SIGNALED == SKUA_WQE_SIGNALED << 1 && IBV_SEND_SOLICITED == SKUA_WQE_SOLICITED << 1 &&
		      IBV_SEND_FENCE == SKUA_WQE_FENCE >> 2, "flags are in the order of verbs");

	return (send_flags >> 1 & (SKUA_WQE_SIGNALED | SKUA_WQE_SOLICITED)) |
	       (send_flags << 2 & SKUA_WQE_FENCE);
}

#endif /* SKUA_OP_H */
