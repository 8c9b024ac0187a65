// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two processes share a context by its descriptor: PDs, MRs and DMs of the one are imported by the other. The other
 * process is forked before a device is opened, and gets the descriptor by SCM_RIGHTS.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define LEN	20000u
#define DM_LEN	4096u

/* What one process tells the other, beside a descriptor. */
struct note {
	uint32_t pd, mr, dm;		/* handles */
	uint32_t lkey, rkey, qpn;
	uint64_t addr;
	union ibv_gid gid[2];
	uint8_t gid_index;
};

/* The other process says where it failed, and ends. */
#define NEED(condition) do {							\
	if (!(condition)) {							\
		fprintf(stderr, "# line %d: %s, errno %d\n", __LINE__, #condition, errno);	\
		_exit(1);							\
	}									\
} while (0)

/* @fd -1: none. */
static bool send_note(int sock, const struct note *note, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { (void *)note, sizeof(*note) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *cmsg = (void *)control;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, 0) == sizeof(*note);
}

/* @fd NULL: none is wanted. */
static bool receive_note(int sock, struct note *note, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { note, sizeof(*note) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	if (recvmsg(sock, &msg, MSG_WAITALL) != sizeof(*note))
		return false;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (fd && (!cmsg || cmsg->cmsg_type != SCM_RIGHTS))
		return false;
	if (fd)
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	return true;
}

/* Another process. */
struct other {
	pid_t pid;
	int sock;
};

static struct other start(void (*run)(int sock))
{
	struct other other;
	int socks[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks))
		return (struct other){ -1, -1 };
	other = (struct other){ fork(), socks[0] };
	if (!other.pid) {
		close(socks[0]);
		run(socks[1]);
		_exit(0);
	}
	close(socks[1]);
	return other;
}

/* It ends by itself, and well. */
static bool ended_well(const struct other *other)
{
	int status;

	close(other->sock);
	return waitpid(other->pid, &status, 0) == other->pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static void kill_it(const struct other *other)
{
	kill(other->pid, SIGKILL);
	waitpid(other->pid, NULL, 0);
	close(other->sock);
}

/* A QP of @context in @pd, with a CQ of its own. */
static struct side make_side(struct ibv_context *context, struct ibv_pd *pd, const struct note *note)
{
	struct side side = {
		.context = context, .pd = pd, .channel = ibv_create_comp_channel(context),
		.gid = note->gid[0], .gid_index = note->gid_index,
	};

	side.cq = ibv_create_cq(context, 2 * PAIR_WRS, NULL, side.channel, 0);
	if (side.cq && !ibv_req_notify_cq(side.cq, 0))
		side.qp = side_create_qp(&side);
	return side;
}

static bool connect_side(struct side *side, const struct note *note)
{
	struct side peer = { .gid = note->gid[1] };

	return !qp_to_init(side->qp, 0) && !qp_to_rtr(side->qp, side, &peer, note->qpn) &&
	       !qp_to_rts(side->qp, 14, 7, 7);
}

static struct note about(const struct side s[2])
{
	return (struct note){
		.pd = s[0].pd->handle, .mr = s[0].mr->handle, .lkey = s[0].mr->lkey, .rkey = s[1].mr->rkey,
		.addr = (uintptr_t)s[0].mem, .gid = { s[0].gid, s[1].gid }, .gid_index = s[0].gid_index,
		.qpn = s[1].qp->qp_num,
	};
}

/* WRITE from the memory of whom the MR belongs to. */
static const char *write_from(struct side *side, uint64_t addr, uint32_t lkey, uint64_t raddr, uint32_t rkey)
{
	struct ibv_sge sge = { addr, LEN, lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { raddr, rkey },
	};

	return side_sends(side, &wr);
}

/* The PD of the first note, of a context that came with it. */
static struct ibv_pd *import_first(int sock, struct note *note)
{
	struct ibv_context *context;
	struct ibv_pd *pd;
	int fd;

	NEED(receive_note(sock, note, &fd));
	context = ibv_import_device(fd);
	NEED(context);
	pd = ibv_import_pd(context, note->pd);
	NEED(pd);
	return pd;
}

/* Imports all that there is, uses it, and leaves it. */
static void use_all(int sock)
{
	struct ibv_context *context;
	struct note note, mine = {};
	uint8_t bytes[DM_LEN];
	struct side side;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;

	pd = import_first(sock, &note);
	context = pd->context;
	mr = ibv_import_mr(pd, note.mr);
	NEED(mr && mr->lkey == note.lkey && mr->length == PAIR_MEM && !mr->addr && mr->pd == pd);
	dm = ibv_import_dm(context, note.dm);
	NEED(dm);
	NEED(!ibv_memcpy_from_dm(bytes, dm, 0, DM_LEN) && bytes[0] == 1 && bytes[DM_LEN - 1] == 2);
	bytes[0] = 3;
	NEED(!ibv_memcpy_to_dm(dm, 0, bytes, DM_LEN));

	side = make_side(context, pd, &note);
	NEED(side.qp);
	mine.qpn = side.qp->qp_num;
	NEED(send_note(sock, &mine, -1));
	/* The peer is ready. */
	NEED(receive_note(sock, &mine, NULL));
	NEED(connect_side(&side, &note));
	NEED(!write_from(&side, note.addr, mr->lkey, mine.addr, note.rkey));

	ibv_unimport_dm(dm);
	ibv_unimport_mr(mr);
	/* What is made with it keeps it. */
	NEED(ibv_dealloc_pd(pd) == EBUSY);
	NEED(!ibv_destroy_qp(side.qp));
	NEED(!ibv_destroy_cq(side.cq));
	NEED(!ibv_destroy_comp_channel(side.channel));
	ibv_unimport_pd(pd);
	NEED(!ibv_close_device(context));
}

TEST(another_process_uses_all)
{
	struct other other = start(use_all);
	struct ibv_alloc_dm_attr dm_attr = { .length = DM_LEN };
	struct note note, its;
	uint8_t bytes[DM_LEN] = { 1, [DM_LEN - 1] = 2 };
	struct side s[2];
	struct ibv_dm *dm;

	ASSERT_LT(0, other.pid);
	ASSERT_EQ(0, pair_open(s));
	pair_fill(s[0].mem, LEN, 5);
	dm = ibv_alloc_dm(s[0].context, &dm_attr);
	ASSERT_NE(NULL, dm);
	ASSERT_EQ(0, ibv_memcpy_to_dm(dm, 0, bytes, DM_LEN));
	note = about(s);
	note.dm = dm->handle;
	ASSERT_TRUE(send_note(other.sock, &note, s[0].context->cmd_fd));
	ASSERT_TRUE(receive_note(other.sock, &its, NULL));

	/* The second QP of the pair is its peer now. */
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	ASSERT_EQ(0, ibv_modify_qp(s[1].qp, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(s[1].qp, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(0, qp_to_rtr(s[1].qp, &s[1], &s[0], its.qpn));
	ASSERT_EQ(0, qp_to_rts(s[1].qp, 14, 7, 7));
	its.addr = (uintptr_t)s[1].mem;
	ASSERT_TRUE(send_note(other.sock, &its, -1));
	EXPECT_TRUE(ended_well(&other));
	EXPECT_EQ(0, memcmp(s[0].mem, s[1].mem, LEN));
	EXPECT_EQ(0, ibv_memcpy_from_dm(bytes, dm, 0, DM_LEN));
	EXPECT_EQ(3, bytes[0]);

	/* It has left all as it was. */
	EXPECT_EQ(0, ibv_free_dm(dm));
	ASSERT_EQ(0, pair_reconnect(s));
	ASSERT_TRUE(pair_transfer(s));
	pair_close(s);
}

/* Each handle that is wrong; its number is in note.pd. */
static void try_handles(int sock)
{
	struct ibv_context *context;
	struct ibv_pd *right;
	struct note note;

	right = import_first(sock, &note);
	context = right->context;
	while (receive_note(sock, &note, NULL)) {
		errno = 0;
		NEED(!ibv_import_pd(context, note.pd) && (errno == ENOENT || errno == EINVAL));
		errno = 0;
		NEED(!ibv_import_mr(right, note.mr) && (errno == ENOENT || errno == EINVAL));
		errno = 0;
		NEED(!ibv_import_dm(context, note.dm) && (errno == ENOENT || errno == EINVAL));
	}
	ibv_unimport_pd(right);
	NEED(!ibv_close_device(context));
}

TEST(wrong_handles)
{
	struct other other = start(try_handles);
	struct ibv_pd *foreign[64], *freed;
	struct ibv_mr *freed_mr;
	uint32_t never = 1000000;
	struct note note;
	struct side s[2];

	ASSERT_LT(0, other.pid);
	ASSERT_EQ(0, pair_open(s));
	note = about(s);
	ASSERT_TRUE(send_note(other.sock, &note, s[0].context->cmd_fd));
	freed = ibv_alloc_pd(s[0].context);
	freed_mr = ibv_reg_mr(s[0].pd, s[0].mem, LEN, 0);
	ASSERT_TRUE(freed && freed_mr);
	for (int i = 0; i < 64; i++) {
		foreign[i] = ibv_alloc_pd(s[1].context);
		ASSERT_NE(NULL, foreign[i]);
	}
	/* Objects of other types; a PD that only the other context has; what is not there yet. */
	struct note rows[] = {
		{ .pd = s[0].mr->handle, .mr = s[0].pd->handle, .dm = s[0].mr->handle },
		{ .pd = foreign[63]->handle, .mr = foreign[63]->handle, .dm = foreign[63]->handle },
		{ .pd = never, .mr = never, .dm = never },
		{ .pd = UINT32_MAX, .mr = UINT32_MAX, .dm = UINT32_MAX },
		{ .pd = freed->handle, .mr = freed_mr->handle, .dm = freed->handle },
	};

	ASSERT_EQ(0, ibv_dealloc_pd(freed));
	ASSERT_EQ(0, ibv_dereg_mr(freed_mr));
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ASSERT_TRUE(send_note(other.sock, &rows[i], -1));
	shutdown(other.sock, SHUT_WR);
	EXPECT_TRUE(ended_well(&other));
	for (int i = 0; i < 64; i++)
		EXPECT_EQ(0, ibv_dealloc_pd(foreign[i]));
	ASSERT_TRUE(pair_transfer(s));
	pair_close(s);
}

/* A descriptor that is not a context's stays its owner's. */
TEST(wrong_descriptors)
{
	int fds[] = { open("/dev/null", O_RDWR), memfd_create("x", 0), -1 };

	for (unsigned int i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_import_device(fds[i]));
		EXPECT_NE(0, errno);
	}
}

/* Makes objects in what it has imported, and waits to be killed. */
static void make_and_wait(int sock)
{
	struct ibv_context *context;
	struct note note;
	struct side side;
	struct ibv_pd *pd;
	void *mem;

	pd = import_first(sock, &note);
	context = pd->context;
	side = make_side(context, pd, &note);
	NEED(side.qp && connect_side(&side, &note));
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(ibv_reg_mr(pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE));
	NEED(ibv_alloc_pd(context));
	NEED(send_note(sock, &note, -1));
	pause();
}

/* Who imports dies: the context is its owner's, who goes on, and takes what is left along. */
TEST(the_importer_dies)
{
	for (int i = 0; i < 3; i++) {
		struct other other = start(make_and_wait);
		struct note note;
		struct side s[2];

		ASSERT_LT(0, other.pid);
		ASSERT_EQ(0, pair_open(s));
		note = about(s);
		ASSERT_TRUE(send_note(other.sock, &note, s[0].context->cmd_fd));
		ASSERT_TRUE(receive_note(other.sock, &note, NULL));
		ASSERT_TRUE(pair_transfer(s));
		kill_it(&other);
		ASSERT_TRUE(pair_transfer(s));
		ASSERT_EQ(0, ibv_destroy_qp(s[0].qp));
		ASSERT_EQ(0, ibv_dereg_mr(s[0].mr));
		/* The QP and the MR of the other are in it. */
		EXPECT_EQ(EBUSY, ibv_dealloc_pd(s[0].pd));
		s[0].qp = NULL;
		s[0].mr = NULL;
		pair_close(s);
	}
}

/* Opens a device, shares it, and waits to be killed. */
static void share_and_wait(int sock)
{
	struct note note = {};
	struct side side;

	NEED(!side_open(&side, "skua_0"));
	pair_fill(side.mem, LEN, 9);
	note.pd = side.pd->handle;
	note.mr = side.mr->handle;
	note.lkey = side.mr->lkey;
	note.addr = (uintptr_t)side.mem;
	NEED(send_note(sock, &note, side.context->cmd_fd));
	pause();
}

/* Who shares dies: the context lives on, and the pages of its MR, too. */
TEST(the_owner_dies)
{
	struct other other = start(share_and_wait);
	struct ibv_context *context;
	struct note note, mine;
	uint8_t want[LEN];
	struct side s[2], side;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int fd;

	ASSERT_LT(0, other.pid);
	ASSERT_TRUE(receive_note(other.sock, &note, &fd));
	kill_it(&other);
	ASSERT_EQ(0, pair_open(s));
	context = ibv_import_device(fd);
	ASSERT_NE(NULL, context);
	pd = ibv_import_pd(context, note.pd);
	ASSERT_NE(NULL, pd);
	mr = ibv_import_mr(pd, note.mr);
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(note.lkey, mr->lkey);
	mine = about(s);
	side = make_side(context, pd, &mine);
	ASSERT_NE(NULL, side.qp);

	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	ASSERT_EQ(0, ibv_modify_qp(s[1].qp, &reset, IBV_QP_STATE));
	ASSERT_EQ(0, qp_to_init(s[1].qp, IBV_ACCESS_REMOTE_WRITE));
	ASSERT_EQ(0, qp_to_rtr(s[1].qp, &s[1], &s[0], side.qp->qp_num));
	ASSERT_EQ(0, qp_to_rts(s[1].qp, 14, 7, 7));
	ASSERT_TRUE(connect_side(&side, &mine));
	WELL(write_from(&side, note.addr, mr->lkey, (uintptr_t)s[1].mem, s[1].mr->rkey));
	pair_fill(want, LEN, 9);
	EXPECT_EQ(0, memcmp(want, s[1].mem, LEN));

	EXPECT_EQ(0, ibv_destroy_qp(side.qp));
	EXPECT_EQ(0, ibv_destroy_cq(side.cq));
	EXPECT_EQ(0, ibv_destroy_comp_channel(side.channel));
	/* An heir may also end what it has imported. */
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(context));
	ASSERT_EQ(0, pair_reconnect(s));
	ASSERT_TRUE(pair_transfer(s));
	pair_close(s);
}

TEST_HARNESS_MAIN
