// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of other drivers (ibv_reg_dmabuf_mr): of udmabuf, of a dma-heap, and of skua_exporter.ko, which takes it back
 * when a test says so. skua_1 has the MRs, and its peer on skua_0 uses them.
 * Rules: MR-13 to MR-15 of Documentation/manual/objects.rst.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>
#include <skua/regs.h>

#include "dmabuf.h"
#include "kselftest_harness.h"
#include "pair.h"
#include "rows.h"

#define SIZE		(1u << 20)
#define PAGE		4096u
#define ALL		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define FAR		0x123450000000ull	/* addresses of no memory */
#define CANARY		0x77
#define TEST_SECONDS	3			/* that races last */

enum source {
	UDMABUF,
	HEAP,
	MOVING,			/* of skua_exporter.ko: pinned, and revoked */
	STATIC,			/* of the same: never moves */
	PAIRS,			/* of the same: several of its pages are one of a page list, though they come one by one */
};

struct buffer {
	int fd;
	uint8_t *mem;
};

static int udmabuf(size_t size, uint8_t **mem)
{
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = -1;
	int memfd = memfd_create("dmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct udmabuf_create create = { .memfd = memfd, .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };

	if (!ftruncate(memfd, size) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	}
	close(memfd);
	close(dev);
	return fd;
}

static int heap(size_t size)
{
	struct dma_heap_allocation_data data = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };
	int dev = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), err;

	err = ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);
	close(dev);
	return err ? -1 : (int)data.fd;
}

/* False: there is none. */
static bool make(struct buffer *buffer, enum source source, size_t size)
{
	static const uint32_t flags[] = { [STATIC] = SKUA_EXPORT_STATIC, [PAIRS] = SKUA_EXPORT_PAIRS };

	buffer->mem = MAP_FAILED;
	if (source == UDMABUF) {
		buffer->fd = udmabuf(size, &buffer->mem);
	} else {
		buffer->fd = source == HEAP ? heap(size) : export_buffer(size, 0, flags[source]);
		if (buffer->fd >= 0)
			buffer->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
	}
	return buffer->fd >= 0 && buffer->mem != MAP_FAILED;
}

static void unmake(struct buffer *buffer, size_t size)
{
	if (buffer->mem != MAP_FAILED)
		munmap(buffer->mem, size);
	if (buffer->fd >= 0)
		close(buffer->fd);
}

FIXTURE(dmabuf) {
	struct side s[2];
	struct buffer buffer;
	struct ibv_mr *mr;
};

FIXTURE_VARIANT(dmabuf) {
	enum source source;
};

FIXTURE_VARIANT_ADD(dmabuf, udmabuf) { UDMABUF };
FIXTURE_VARIANT_ADD(dmabuf, heap) { HEAP };
FIXTURE_VARIANT_ADD(dmabuf, moving) { MOVING };
FIXTURE_VARIANT_ADD(dmabuf, static) { STATIC };
FIXTURE_VARIANT_ADD(dmabuf, pairs) { PAIRS };

FIXTURE_SETUP(dmabuf)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_LE(0, exporter());
	ASSERT_TRUE(make(&self->buffer, variant->source, SIZE));
	self->mr = ibv_reg_dmabuf_mr(self->s[1].pd, 0, SIZE, 0, self->buffer.fd, ALL);
	ASSERT_NE(NULL, self->mr) {
		TH_LOG("%s", strerror(errno));
	}
}

FIXTURE_TEARDOWN(dmabuf)
{
	if (self->mr)
		EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	unmake(&self->buffer, SIZE);
	EXPECT_TRUE(none_exported());
	EXPECT_EQ(0, pair_reconnect(self->s));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* The status of an operation of a side, between its own memory and the peer's. -1: it did not complete. */
static int op(struct side *a, enum ibv_wr_opcode opcode, struct ibv_sge *sge, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {
		.sg_list = sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { addr, rkey },
	};
	struct ibv_wc wc;

	if (ibv_post_send(a->qp, &wr, &bad) || !side_wait(a, &wc, 60))
		return -1;
	return wc.status;
}

static int remote(struct side *a, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)a->mem, len, a->mr->lkey };

	return op(a, opcode, &sge, addr, rkey);
}

/* All of the MR is written by the peer, and read again; no byte beside it is touched. */
static bool usable(struct side s[2], struct ibv_mr *mr, uint64_t iova, uint8_t *mem, uint64_t offset)
{
	static uint8_t seed;
	uint32_t len = (uint32_t)mr->length;
	uint8_t *copy = malloc(len);
	bool good;

	pair_fill(s[0].mem, len, ++seed);
	memcpy(copy, s[0].mem, len);
	memset(mem, CANARY, SIZE);
	good = remote(&s[0], IBV_WR_RDMA_WRITE, iova, mr->rkey, len) == IBV_WC_SUCCESS &&
	       !memcmp(mem + offset, copy, len);
	memset(s[0].mem, 0, len);
	good = good && remote(&s[0], IBV_WR_RDMA_READ, iova, mr->rkey, len) == IBV_WC_SUCCESS &&
	       !memcmp(s[0].mem, copy, len);
	for (uint64_t i = 0; i < SIZE; i++)
		good = good && (i - offset < len || mem[i] == CANARY);
	free(copy);
	return good;
}

TEST_F(dmabuf, whole)
{
	ASSERT_TRUE(usable(self->s, self->mr, 0, self->buffer.mem, 0));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], IBV_WR_RDMA_READ, SIZE, self->mr->rkey, 1));
}

/* Pieces that begin and end anywhere, at addresses that have nothing to do with memory. */
TEST_F(dmabuf, pieces)
{
	const struct {
		uint64_t offset;
		uint32_t length;
	} rows[] = {
		{ 0, 1 }, { 0, PAGE }, { 1, PAGE }, { PAGE - 1, 2 }, { PAGE, SIZE - PAGE }, { 123, SIZE - 123 - 7 },
		{ SIZE - 1, 1 }, { SIZE - PAGE, PAGE }, { 5 * PAGE + 77, 100 * PAGE }, { 3 * PAGE - 8, PAGE + 16 },
	};

	for EACH(row, rows) {
		uint64_t iova = FAR + 7 * PAGE + row->offset % PAGE;
		struct ibv_mr *mr = ibv_reg_dmabuf_mr(self->s[1].pd, row->offset, row->length, iova, self->buffer.fd, ALL);

		ASSERT_NE(NULL, mr) {
			TH_LOG("%llu+%u: %s", (unsigned long long)row->offset, row->length, strerror(errno));
		}
		ASSERT_TRUE(usable(self->s, mr, iova, self->buffer.mem, row->offset)) {
			TH_LOG("%llu+%u", (unsigned long long)row->offset, row->length);
		}
		ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], IBV_WR_RDMA_READ, iova + row->length, mr->rkey, 1));
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], IBV_WR_RDMA_WRITE, iova - 1, mr->rkey, 2));
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(0, ibv_dereg_mr(mr));
	}
}

/* Its owner sends from it, receives into it, and reads into it. */
TEST_F(dmabuf, by_its_owner)
{
	struct ibv_sge sge = { 3 * PAGE - 50, 100, self->mr->lkey }, there = { 17 * PAGE - 1, 100, self->mr->lkey };
	struct ibv_recv_wr *bad, recv = { .wr_id = 8, .sg_list = &there, .num_sge = 1 };
	struct side *a = &self->s[0], *b = &self->s[1];
	uint8_t *mem = self->buffer.mem;
	struct ibv_wc wc;

	pair_fill(mem + sge.addr, 100, 1);
	ASSERT_EQ(IBV_WC_SUCCESS, op(b, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)a->mem, a->mr->rkey));
	ASSERT_EQ(0, memcmp(a->mem, mem + sge.addr, 100));
	pair_fill(a->mem, 100, 2);
	ASSERT_EQ(IBV_WC_SUCCESS, op(b, IBV_WR_RDMA_READ, &sge, (uintptr_t)a->mem, a->mr->rkey));
	ASSERT_EQ(0, memcmp(a->mem, mem + sge.addr, 100));
	pair_fill(a->mem, 100, 3);
	ASSERT_EQ(0, ibv_post_recv(b->qp, &recv, &bad));
	ASSERT_EQ(IBV_WC_SUCCESS, remote(a, IBV_WR_SEND, 0, 0, 100));
	ASSERT_TRUE(side_wait(b, &wc, 60));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(a->mem, mem + there.addr, 100));
}

/* The MR keeps the buffer. */
TEST_F(dmabuf, the_descriptor_is_closed)
{
	pair_fill(self->buffer.mem, SIZE, 9);
	unmake(&self->buffer, SIZE);
	self->buffer = (struct buffer){ -1, MAP_FAILED };
	if (variant->source >= MOVING)
		ASSERT_EQ(1, exported().buffers);
	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_READ, 0, self->mr->rkey, SIZE));
	pair_fill(self->s[0].mem + SIZE, SIZE, 9);
	ASSERT_EQ(0, memcmp(self->s[0].mem, self->s[0].mem + SIZE, SIZE));
	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_WRITE, 1, self->mr->rkey, SIZE - 1));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	ASSERT_TRUE(none_exported());
}

/* Rights are those of this MR; others of the same memory have their own. */
TEST_F(dmabuf, rights)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(self->s[1].pd, 0, SIZE, 0, self->buffer.fd, IBV_ACCESS_REMOTE_READ);

	ASSERT_NE(NULL, mr);
	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_READ, 0, mr->rkey, SIZE));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], IBV_WR_RDMA_WRITE, 0, mr->rkey, 8));
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(usable(self->s, self->mr, 0, self->buffer.mem, 0));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_TRUE(usable(self->s, self->mr, 0, self->buffer.mem, 0));
}

/* Both NICs have it, and move it from one half to the other. */
TEST_F(dmabuf, of_both_nics)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(self->s[0].pd, 0, SIZE, FAR, self->buffer.fd, ALL);
	struct ibv_sge sge = { FAR, SIZE / 2, 0 };

	ASSERT_NE(NULL, mr);
	sge.lkey = mr->lkey;
	pair_fill(self->buffer.mem, SIZE / 2, 4);
	ASSERT_EQ(IBV_WC_SUCCESS, op(&self->s[0], IBV_WR_RDMA_WRITE, &sge, SIZE / 2, self->mr->rkey));
	ASSERT_EQ(0, memcmp(self->buffer.mem, self->buffer.mem + SIZE / 2, SIZE / 2));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

/* The kernel has it refused to be registered anew, whatever is to change: the library never asks. */
TEST_F(dmabuf, it_is_not_registered_anew)
{
	for (uint32_t flags = 1; flags < 8; flags++) {
		struct ib_uverbs_rereg_mr_resp resp;
		struct {
			struct ib_uverbs_cmd_hdr hdr;
			struct ib_uverbs_rereg_mr cmd;
		} req = {
			.hdr = { IB_USER_VERBS_CMD_REREG_MR, sizeof(req) / 4, sizeof(resp) / 4 },
			.cmd = { .response = (uintptr_t)&resp, .mr_handle = self->mr->handle, .flags = flags,
				 .start = (uintptr_t)self->s[1].mem, .length = PAGE,
				 .hca_va = (uintptr_t)self->s[1].mem, .pd_handle = self->s[1].pd->handle,
				 .access_flags = ALL },
		};

		ASSERT_EQ(-1, write(self->s[1].context->cmd_fd, &req, sizeof(req)));
		ASSERT_EQ(EOPNOTSUPP, errno);
	}
	ASSERT_TRUE(usable(self->s, self->mr, 0, self->buffer.mem, 0));
}

TEST_F(dmabuf, nothing_is_left)
{
	struct skua_exported before = exported(), after;

	for (int i = 0; i < 300; i++) {
		struct ibv_mr *mr = ibv_reg_dmabuf_mr(self->s[i % 2].pd, i, SIZE - 2 * i, FAR + i, self->buffer.fd, ALL);

		ASSERT_NE(NULL, mr);
		ASSERT_EQ(0, ibv_dereg_mr(mr));
	}
	after = exported();
	ASSERT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

/* A process that is killed under traffic: all of it goes. */
TEST_F(dmabuf, its_process_is_killed)
{
	int pipes[2], status;
	char c;
	pid_t child;

	ASSERT_EQ(0, pipe(pipes));
	child = fork();
	if (!child) {
		struct side s[2];
		struct buffer buffer;
		struct ibv_mr *mr;

		if (pair_open(s) || !make(&buffer, variant->source, SIZE))
			_exit(1);
		mr = ibv_reg_dmabuf_mr(s[1].pd, 0, SIZE, 0, buffer.fd, ALL);
		if (!mr || write(pipes[1], "x", 1) != 1)
			_exit(2);
		while (remote(&s[0], IBV_WR_RDMA_WRITE, 0, mr->rkey, SIZE) == IBV_WC_SUCCESS)
			;
		_exit(3);
	}
	close(pipes[1]);
	ASSERT_EQ(1, read(pipes[0], &c, 1));
	close(pipes[0]);
	usleep(100000);
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	ASSERT_GE(1, exported().buffers);
	ASSERT_TRUE(usable(self->s, self->mr, 0, self->buffer.mem, 0));
}

/* Each wrong argument has its error, and the buffer that is registered goes on. */
TEST_F(dmabuf, bad_arguments)
{
	int fd = self->buffer.fd, memfd = memfd_create("none", MFD_CLOEXEC), closed = dup(fd);
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct {
		const char *name;
		uint64_t offset;
		size_t length;
		uint64_t iova;
		int fd, access, err;
	} rows[] = {
		{ "no descriptor", 0, SIZE, 0, -1, ALL, EBADF },
		{ "no descriptor, and no bytes", 0, 0, 0, -1, 0, EBADF },
		{ "no descriptor, and too many bytes", 0, 1ull << 60, 0, -1, 0, EBADF },
		{ "a descriptor that is closed", 0, SIZE, 0, closed, ALL, EBADF },
		{ "a descriptor that never was", 0, SIZE, 0, 100000, ALL, EBADF },
		{ "a file", 0, SIZE, 0, memfd, ALL, EINVAL },
		{ "a device", 0, SIZE, 0, null, ALL, EINVAL },
		{ "no bytes", 0, 0, 0, fd, ALL, EINVAL },
		{ "no bytes, at the end", SIZE, 0, 0, fd, ALL, EINVAL },
		{ "one byte too many", 0, SIZE + 1, 0, fd, ALL, EINVAL },
		{ "one byte too many behind an offset", PAGE + 1, SIZE - PAGE, 1, fd, ALL, EINVAL },
		{ "behind the end", SIZE, 1, 0, fd, ALL, EINVAL },
		{ "far behind the end", 1ull << 62, PAGE, 0, fd, ALL, EINVAL },
		{ "an end that wraps", -(uint64_t)PAGE, 2 * PAGE, 0, fd, ALL, EINVAL },
		{ "the whole range", 0, SIZE_MAX, 0, fd, ALL, EINVAL },
		{ "an address that wraps", 0, SIZE, -(uint64_t)PAGE, fd, ALL, EINVAL },
		{ "an address of another offset", 0, SIZE, 1, fd, ALL, EINVAL },
		{ "an offset of another address", 8, PAGE, 0, fd, ALL, EINVAL },
		{ "remote rights alone", 0, SIZE, 0, fd, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ "atomics alone", 0, SIZE, 0, fd, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ "on demand", 0, SIZE, 0, fd, ALL | IBV_ACCESS_ON_DEMAND, EINVAL },
		{ "zero-based", 0, SIZE, 0, fd, ALL | IBV_ACCESS_ZERO_BASED, EINVAL },
		{ "windows", 0, SIZE, 0, fd, ALL | IBV_ACCESS_MW_BIND, EINVAL },
		{ "huge pages", 0, SIZE, 0, fd, ALL | IBV_ACCESS_HUGETLB, EINVAL },
		{ "a right that there is not", 0, SIZE, 0, fd, 1 << 30, EINVAL },
	};

	close(closed);
	for EACH(row, rows) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_dmabuf_mr(self->s[1].pd, row->offset, row->length, row->iova, row->fd, row->access);
		GAVE(row->err, mr ? (ibv_dereg_mr(mr), 0) : errno, row);
		if (variant->source == MOVING)
			ASSERT_EQ(1, exported().mapped);
	}
	close(memfd);
	close(null);
	ASSERT_TRUE(usable(self->s, self->mr, 0, self->buffer.mem, 0));
}

FIXTURE(revoked) {
	struct side s[2];
	struct buffer buffer;
	struct ibv_mr *mr;
	pthread_t thread;
	bool stop;
	long done;		/* operations of the thread, or registrations */
	int failed;		/* what it found that should not be */
};

FIXTURE_SETUP(revoked)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_LE(0, exporter());
	ASSERT_TRUE(make(&self->buffer, MOVING, SIZE));
	self->mr = ibv_reg_dmabuf_mr(self->s[1].pd, 0, SIZE, FAR, self->buffer.fd, ALL);
	ASSERT_NE(NULL, self->mr);
}

FIXTURE_TEARDOWN(revoked)
{
	if (self->mr)
		EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	unmake(&self->buffer, SIZE);
	EXPECT_TRUE(none_exported());
	EXPECT_EQ(0, pair_reconnect(self->s));
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

static bool all_canary(const uint8_t *mem)
{
	return mem[0] == CANARY && !memcmp(mem, mem + 1, SIZE - 1);
}

/* MR-13 MR-14 */
TEST_F(revoked, nobody_uses_it)
{
	struct ibv_sge sge = { FAR, 100, self->mr->lkey };
	const struct {
		enum ibv_wr_opcode opcode;
		bool owner;
		int status;
	} rows[] = {
		{ IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR }, { IBV_WR_RDMA_READ, false, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, true, IBV_WC_LOC_PROT_ERR }, { IBV_WR_RDMA_READ, true, IBV_WC_LOC_PROT_ERR },
		{ IBV_WR_SEND, true, IBV_WC_LOC_PROT_ERR },
	};

	ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_WRITE, FAR, self->mr->rkey, SIZE));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, take_back(self->buffer.fd));
		ASSERT_EQ(0, exported().mapped);
		ASSERT_EQ(0, exported().pinned);
		memset(self->buffer.mem, CANARY, SIZE);
		for EACH(row, rows) {
			struct side *a = &self->s[0], *b = &self->s[1];

			memset(a->mem, 1, 100);
			ASSERT_EQ(row->status, row->owner ?
				  op(b, row->opcode, &sge, (uintptr_t)a->mem, a->mr->rkey) :
				  remote(a, row->opcode, FAR, self->mr->rkey, 100));
			ASSERT_EQ(0, pair_reconnect(self->s));
			ASSERT_EQ(1, a->mem[0]);
			ASSERT_EQ(0, memcmp(a->mem, a->mem + 1, 99));
			ASSERT_TRUE(all_canary(self->buffer.mem));
		}
	}
	/* It is gone for good. */
	ASSERT_EQ(NULL, ibv_reg_dmabuf_mr(self->s[1].pd, 0, SIZE, 0, self->buffer.fd, ALL));
	ASSERT_EQ(ENODEV, errno);
}

/* All MRs of the buffer go, and none of another. */
TEST_F(revoked, all_its_regions)
{
	struct buffer other;
	struct ibv_mr *mr[6];

	ASSERT_TRUE(make(&other, MOVING, SIZE));
	for (int i = 0; i < 6; i++) {
		mr[i] = ibv_reg_dmabuf_mr(self->s[1].pd, PAGE, SIZE - PAGE, 0, i < 5 ? self->buffer.fd : other.fd, ALL);
		ASSERT_NE(NULL, mr[i]);
		ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_READ, 0, mr[i]->rkey, 8));
	}
	ASSERT_EQ(0, ibv_dereg_mr(mr[0]));
	ASSERT_EQ(0, take_back(self->buffer.fd));
	ASSERT_EQ(1, exported().mapped);
	for (int i = 1; i < 5; i++) {
		ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], IBV_WR_RDMA_READ, 0, mr[i]->rkey, 8));
		ASSERT_EQ(0, pair_reconnect(self->s));
	}
	ASSERT_TRUE(usable(self->s, mr[5], 0, other.mem, PAGE));
	for (int i = 1; i < 6; i++)
		ASSERT_EQ(0, ibv_dereg_mr(mr[i]));
	unmake(&other, SIZE);
}

static void *traffic(void *arg)
{
	FIXTURE_DATA(revoked) *self = arg;
	int status = IBV_WC_SUCCESS;

	for (int i = 0; status == IBV_WC_SUCCESS; i++) {
		status = remote(&self->s[0], i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, FAR, self->mr->rkey, SIZE);
		__atomic_add_fetch(&self->done, 1, __ATOMIC_RELAXED);
	}
	self->failed = status == IBV_WC_REM_ACCESS_ERR ? 0 : status;
	return NULL;
}

/* MR-15: when the exporter goes on, nobody writes there any more. */
TEST_F(revoked, under_traffic)
{
	for (int round = 0; round < 10; round++) {
		self->done = 0;
		ASSERT_EQ(0, pthread_create(&self->thread, NULL, traffic, self));
		while (__atomic_load_n(&self->done, __ATOMIC_RELAXED) < 3)
			usleep(100);
		usleep(round * 300);
		ASSERT_EQ(0, take_back(self->buffer.fd));
		memset(self->buffer.mem, CANARY, SIZE);
		ASSERT_EQ(0, pthread_join(self->thread, NULL));
		ASSERT_EQ(0, self->failed);
		ASSERT_TRUE(all_canary(self->buffer.mem));
		ASSERT_EQ(0, pair_reconnect(self->s));
		ASSERT_EQ(0, ibv_dereg_mr(self->mr));
		unmake(&self->buffer, SIZE);
		ASSERT_TRUE(make(&self->buffer, MOVING, SIZE));
		self->mr = ibv_reg_dmabuf_mr(self->s[1].pd, 0, SIZE, FAR, self->buffer.fd, ALL);
		ASSERT_NE(NULL, self->mr);
	}
}

static void *registrations(void *arg)
{
	FIXTURE_DATA(revoked) *self = arg;
	struct ibv_mr *mr;

	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		mr = ibv_reg_dmabuf_mr(self->s[0].pd, 0, SIZE, 0, __atomic_load_n(&self->buffer.fd, __ATOMIC_RELAXED), ALL);
		/* It is revoked, or closed, and the next is not there yet. */
		if (!mr && errno != ENODEV && errno != EBADF)
			self->failed = errno;
		if (mr && ibv_dereg_mr(mr))
			self->failed = errno;
		if (mr)
			__atomic_add_fetch(&self->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* It is revoked while other threads register and deregister it. */
TEST_F(revoked, while_it_is_registered)
{
	time_t end = time(NULL) + TEST_SECONDS;
	pthread_t threads[3];
	int rounds;

	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, registrations, self));
	for (rounds = 0; rounds < 20 || time(NULL) < end; rounds++) {
		struct buffer old = self->buffer, new;

		usleep(rounds % 7 * 1000);
		ASSERT_EQ(0, take_back(old.fd));
		ASSERT_TRUE(make(&new, MOVING, SIZE));
		self->buffer.mem = new.mem;
		__atomic_store_n(&self->buffer.fd, new.fd, __ATOMIC_RELAXED);
		unmake(&old, SIZE);
	}
	self->stop = true;
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	ASSERT_EQ(0, self->failed);
	ASSERT_LT(0, self->done);
	TH_LOG("%d revocations, %ld registrations", rounds, self->done);
}

/* Its descriptor and its mapping may be gone when it is revoked, and so may the MR. */
TEST_F(revoked, what_is_gone_already)
{
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	ASSERT_EQ(0, exported().mapped);
	ASSERT_EQ(0, take_back(self->buffer.fd));
}

/* An MR is destroyed that was revoked, and its key is not reused for long: nothing else is revoked then. */
TEST_F(revoked, twice)
{
	struct ibv_mr *mr[64];

	ASSERT_EQ(0, take_back(self->buffer.fd));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	for (int i = 0; i < 64; i++) {
		mr[i] = ibv_reg_mr(self->s[1].pd, self->s[1].mem, PAGE, ALL);
		ASSERT_NE(NULL, mr[i]);
	}
	ASSERT_EQ(0, take_back(self->buffer.fd));
	for (int i = 0; i < 64; i++) {
		ASSERT_EQ(IBV_WC_SUCCESS,
			  remote(&self->s[0], IBV_WR_RDMA_READ, (uintptr_t)self->s[1].mem, mr[i]->rkey, 8));
		ASSERT_EQ(0, ibv_dereg_mr(mr[i]));
	}
}

FIXTURE(exporters) {
	struct side s[2];
};

FIXTURE_SETUP(exporters)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_LE(0, exporter());
}

FIXTURE_TEARDOWN(exporters)
{
	EXPECT_TRUE(none_exported());
	EXPECT_TRUE(pair_transfer(self->s));
	pair_close(self->s);
}

/* Memory that has to be able to move is refused, with the exporter's error. */
TEST_F(exporters, that_does_not_pin)
{
	int fd = export_buffer(SIZE, 0, SKUA_EXPORT_UNPINNABLE);

	ASSERT_LE(0, fd);
	ASSERT_EQ(NULL, ibv_reg_dmabuf_mr(self->s[1].pd, 0, SIZE, 0, fd, ALL));
	ASSERT_EQ(EOPNOTSUPP, errno);
	close(fd);
}

/* The first of a device's memory BARs, if it is not a Skua NIC's; 0: there is none. */
static uint64_t bar_of(const char *dir)
{
	unsigned long long start, end, flags, found = 0;
	unsigned int id = 0;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/device", dir);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%x", &id) != 1 || id == SKUA_PCI_DEVICE_ID)
		goto out;
	snprintf(path, sizeof(path), "%s/resource", dir);
	file = freopen(path, "r", file);
	for (int i = 0; file && !found && i < 6 && fscanf(file, "%llx %llx %llx", &start, &end, &flags) == 3; i++)
		if (flags & 0x200 && end - start + 1 >= PAGE)	/* IORESOURCE_MEM */
			found = start;
out:
	if (file)
		fclose(file);
	return found;
}

static uint64_t foreign_bar(void)
{
	uint64_t bar = 0;
	glob_t dirs;

	if (glob("/sys/bus/pci/devices/*", 0, NULL, &dirs))
		return 0;
	for (size_t i = 0; !bar && i < dirs.gl_pathc; i++)
		bar = bar_of(dirs.gl_pathv[i]);
	globfree(&dirs);
	return bar;
}

/*
 * MEM-4: memory behind a BAR of another device. QEMU does not give skuad such memory, so it cannot be reached, and the
 * device says so when the MR is made.
 */
TEST_F(exporters, of_a_bar)
{
	uint64_t bar = foreign_bar();
	int fd;

	ASSERT_NE(0, bar);
	fd = export_buffer(PAGE, bar, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(NULL, ibv_reg_dmabuf_mr(self->s[1].pd, 0, PAGE, 0, fd, ALL));
	ASSERT_EQ(EFAULT, errno);
	ASSERT_EQ(0, exported().mapped);
	close(fd);
}

/* More pages than one list has. */
TEST_F(exporters, of_many_pages)
{
	const size_t size = 64u << 20;
	struct buffer buffer;
	struct ibv_mr *mr;

	ASSERT_TRUE(make(&buffer, MOVING, size));
	mr = ibv_reg_dmabuf_mr(self->s[1].pd, 12345, size - 12345, FAR + 12345, buffer.fd, ALL);
	ASSERT_NE(NULL, mr);
	for (size_t at = 12345; at < size; at += 511 * PAGE + 13) {
		pair_fill(self->s[0].mem, 3 * PAGE, (uint8_t)at);
		if (at + 3 * PAGE > size)
			break;
		ASSERT_EQ(IBV_WC_SUCCESS, remote(&self->s[0], IBV_WR_RDMA_WRITE, FAR + at, mr->rkey, 3 * PAGE));
		ASSERT_EQ(0, memcmp(buffer.mem + at, self->s[0].mem, 3 * PAGE));
	}
	ASSERT_EQ(0, take_back(buffer.fd));
	ASSERT_EQ(IBV_WC_REM_ACCESS_ERR, remote(&self->s[0], IBV_WR_RDMA_READ, FAR + 12345, mr->rkey, 8));
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	unmake(&buffer, size);
}

TEST_HARNESS_MAIN
