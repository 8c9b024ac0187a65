/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages over connections of two NICs: what test_rc and test_uc share. */
#ifndef SELFTESTS_CONNECTION_H
#define SELFTESTS_CONNECTION_H

#include "pair.h"

#define HALF		(PAIR_MEM / 2)	/* sources below, targets above */

static inline int conn_recv(struct side *side, uint32_t size, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)side->mem + HALF, size, side->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(side->qp, &wr, &bad);
}

/* From where the first's memory begins to the middle of the other's; READ the other way round. */
static inline struct ibv_send_wr conn_wr(struct ibv_sge *sge, struct side s[2], enum ibv_wr_opcode opcode,
					 uint32_t size)
{
	*sge = (struct ibv_sge){ (uintptr_t)s[0].mem, size, s[0].mr->lkey };
	return (struct ibv_send_wr){
		.wr_id = 77, .sg_list = sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = 0x12345678,
		.wr.rdma = { (uintptr_t)s[1].mem + HALF, s[1].mr->rkey },
	};
}

/* One operation of the first that has to succeed, and its data. */
#define GOOD(op, size) do {						\
	struct side *from_ = &self->s[(op) == IBV_WR_RDMA_READ];	\
	struct side *to_ = &self->s[(op) != IBV_WR_RDMA_READ];		\
	const char *bad_ = pair_message(self->s, op, from_->mem, to_->mem + HALF, size); \
									\
	ASSERT_EQ(NULL, bad_) {						\
		TH_LOG("%s, %u bytes", bad_, (unsigned int)(size));	\
	}								\
} while (0)

static const uint32_t sizes[] = {
	0, 1, 7, 64, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 65536, 1 << 20, (1 << 20) + 1,
};

#define EACH_SIZE(op) do {						\
	for (unsigned int i_ = 0; i_ < sizeof(sizes) / sizeof(sizes[0]); i_++) \
		GOOD(op, sizes[i_]);					\
} while (0)

#endif
