// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "harness/datagram.h"

void ud_bring(struct world *w, struct node *n, uint32_t qkey, uint8_t to_state)
{
	must(w, n, state_cmd(n->qpn, SKUA_QPS_RESET));
	host_store32(at(n, n->sq_dbr), 0);
	host_store32(at(n, n->rq_dbr), 0);
	n->sq_pi = 0;
	n->rq_pi = 0;
	if (to_state >= SKUA_QPS_INIT)
		must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_PKEY_INDEX |
				      SKUA_QP_ATTR_QKEY, (struct skua_qp_attr){
				      .state = SKUA_QPS_INIT, .qkey = htole32(qkey) }));
	if (to_state >= SKUA_QPS_RTR)
		must(w, n, state_cmd(n->qpn, SKUA_QPS_RTR));
	if (to_state >= SKUA_QPS_RTS)
		must(w, n, modify_cmd(n->qpn, SKUA_QP_ATTR_STATE | SKUA_QP_ATTR_SQ_PSN,
				      (struct skua_qp_attr){ .state = SKUA_QPS_RTS,
				      .sq_psn = htole32(FIRST_PSN) }));
	if (to_state > SKUA_QPS_RTS)
		must(w, n, state_cmd(n->qpn, to_state));
}

struct queues ud_queues(struct world *w, struct node *n, uint8_t type, uint8_t to_state)
{
	struct queues old = new_queues(n);
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.type = type;
	cmd.create_qp.flags = htole32(SKUA_QP_PRIVILEGED);
	n->qpn = must(w, n, cmd);
	ud_bring(w, n, type == SKUA_QPT_GSI ? GSI_QKEY : QKEY, to_state);
	return old;
}

struct skua_wqe_ud ud_to(const struct node *peer)
{
	struct skua_wqe_ud to = { .dest_qpn = htole32(peer->qpn), .qkey = htole32(QKEY) };

	memcpy(to.av.dgid, peer->gid, 16);
	memcpy(to.av.dmac, peer->mac, 6);
	return to;
}

struct skua_wqe_ud ud_to_group(const uint8_t *mgid)
{
	struct skua_wqe_ud to = { .dest_qpn = htole32(0xffffff), .qkey = htole32(QKEY) };

	memcpy(to.av.dgid, mgid, 16);
	if (gid_is_ipv4(mgid))
		memcpy(to.av.dmac, (uint8_t[6]){ 1, 0, 0x5e, mgid[13] & 0x7f, mgid[14], mgid[15] }, 6);
	else
		memcpy(to.av.dmac, (uint8_t[6]){ 0x33, 0x33, mgid[12], mgid[13], mgid[14], mgid[15] },
		       6);
	return to;
}

void ud_join(struct world *w, struct node *n, unsigned int num, const uint8_t *mgid)
{
	struct skua_cmd attach = CMD(SKUA_CMD_ATTACH_MCAST);
	struct queues old = new_queues(n);
	struct skua_cmd cmd = create_qp_cmd(n);

	cmd.create_qp.type = SKUA_QPT_UD;
	memcpy(attach.mcast.mgid, mgid, 16);
	while (num--) {
		n->qpn = must(w, n, cmd);
		ud_bring(w, n, QKEY, SKUA_QPS_RTR);
		attach.mcast.qpn = htole32(n->qpn);
		must(w, n, attach);
	}
	use_queues(n, old);
}

void post_ud(struct node *n, uint8_t opcode, uint8_t flags, uint64_t addr, uint32_t len,
	     struct skua_wqe_ud to, uint32_t imm)
{
	struct { struct skua_wqe_ctrl c; struct skua_wqe_ud u; struct skua_sge s[4]; } wqe = {
		.c = { .opcode = opcode, .flags = flags, .nblocks = 2, .num_sge = len > 0,
		       .cookie = htole32(n->sq_pi), .imm_data = imm },
		.u = to, .s = { { htole64(addr), htole32(len), htole32(n->key) } } };

	post_blocks(n, &wqe, 2);
}

void set_gid(struct world *w, struct node *n, uint16_t index, const uint8_t *gid,
	     const uint8_t *mac, uint16_t vlan)
{
	struct skua_cmd cmd = CMD(SKUA_CMD_SET_GID, .set_gid = {
		.vlan = htole16(vlan), .index = htole16(index) });

	memcpy(cmd.set_gid.gid, gid, 16);
	memcpy(cmd.set_gid.mac, mac, 6);
	cmd.hdr.port = 1;
	must(w, n, cmd);
}

struct skua_cqe *expect_datagram(struct world *w, struct node *n, uint32_t byte_len)
{
	struct skua_cqe *cqe = await_cqe(w, n);

	assert_int_equal(cqe->opcode, SKUA_CQE_RECV);
	assert_int_equal(cqe->status, SKUA_CQE_SUCCESS);
	assert_int_equal(le32toh(cqe->byte_len), byte_len);
	return cqe;
}

struct train datagram(struct node *n)
{
	return (struct train){
		.op = TRAIN_SEND, .transport = TRANSPORT_UD, .first = true, .last = true, .npkts = 1,
		.pmtu = 4096, .psn = 5, .dest_qpn = n->qpn, .src_qpn = 0x777, .qkey = QKEY,
	};
}
