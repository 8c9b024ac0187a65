// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions of every size and page size: none to three levels of page lists, pages of 4 KiB to 1 GiB, the
 * largest region and the largest message. Large regions are a file of some MiB mapped many times, so that
 * little memory is needed; what is written at one place is seen at the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define ALL	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define KIB	1024ull
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)
#define FILE_SIZE (64 * MIB)
#define ENTRIES	512ull			/* of a list page */

FIXTURE(pagelists) {
	struct side s[2];
	struct ibv_device_attr attr;
};

FIXTURE_SETUP(pagelists)
{
	ASSERT_EQ(0, pair_open(self->s));
	ASSERT_EQ(0, ibv_query_device(self->s[0].context, &self->attr));
}

FIXTURE_TEARDOWN(pagelists)
{
	pair_close(self->s);
}

/* Address space that is mapped piece by piece, beginning at a multiple of 1 GiB. */
static uint8_t *reserve(uint64_t size)
{
	uint8_t *all = mmap(NULL, size + GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return all == MAP_FAILED ? NULL : (uint8_t *)(((uintptr_t)all + GIB - 1) & ~(GIB - 1));
}

static bool map(uint8_t *where, uint64_t size, int fd, uint64_t offset)
{
	return mmap(where, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == where;
}

/* A file over and over again. */
static uint8_t *tile(int fd, uint64_t size)
{
	uint8_t *mem = reserve(size);

	for (uint64_t at = 0; mem && at < size; at += FILE_SIZE)
		if (!map(mem + at, size - at < FILE_SIZE ? size - at : FILE_SIZE, fd, 0))
			return NULL;
	return mem;
}

/* The same, with the first two pages swapped, so that only pages of 4 KiB will do. */
static uint8_t *tile_small(int fd, uint64_t size)
{
	uint8_t *mem = tile(fd, size);

	if (mem && size >= 8 * KIB && (!map(mem, 4 * KIB, fd, 4 * KIB) || !map(mem + 4 * KIB, 4 * KIB, fd, 0)))
		return NULL;
	return mem;
}

static int file_of(unsigned int flags)
{
	int fd = memfd_create("pages", flags);

	if (fd >= 0 && ftruncate(fd, FILE_SIZE))
		return -1;
	return fd;
}

static bool work(struct side *a, enum ibv_wr_opcode opcode, void *local, uint64_t remote, uint32_t rkey,
		 uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)local, size, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { remote, rkey },
	};
	struct ibv_wc wc;

	return !ibv_post_send(a->qp, &wr, &bad) && side_wait(a, &wc, 10) && wc.status == IBV_WC_SUCCESS;
}

/* A WRITE to a place of the region, and a READ of it. */
static bool reaches(struct side s[2], uint8_t *mem, uint64_t offset, uint32_t size, struct ibv_mr *mr)
{
	static uint8_t seed;
	uint8_t *out = s[0].mem, *in = s[0].mem + PAIR_MEM / 2;

	seed += 31;
	for (uint32_t i = 0; i < size; i++)
		out[i] = (uint8_t)(seed + i * 5 + (i >> 8));
	memset(mem + offset, 0, size);
	memset(in, 0, size);
	return work(&s[0], IBV_WR_RDMA_WRITE, out, (uintptr_t)mem + offset, mr->rkey, size) &&
	       !memcmp(mem + offset, out, size) &&
	       work(&s[0], IBV_WR_RDMA_READ, in, (uintptr_t)mem + offset, mr->rkey, size) &&
	       !memcmp(in, out, size);
}

/* A region as a whole, at its ends, across boundaries of pages and lists, and not behind its end. */
static void check(struct __test_metadata *_metadata, struct side s[2], uint8_t *mem, uint64_t size)
{
	const uint64_t places[] = {
		0, size / 2, size / 3, 4 * KIB - 1, ENTRIES * 4 * KIB - 1, 2 * MIB - 100, 64 * MIB - 1,
		ENTRIES * ENTRIES * 4 * KIB - 5000, GIB - 1, 2 * GIB - 1, 4 * GIB - 1, size - 10000, size - 1,
	};
	struct ibv_mr *mr = ibv_reg_mr(s[1].pd, mem, size, ALL);
	struct ibv_async_event event;

	ASSERT_NE(NULL, mr) {
		TH_LOG("%llu bytes: %s", (unsigned long long)size, strerror(errno));
	}
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		uint64_t left;

		if (places[i] >= size)
			continue;
		left = size - places[i];
		ASSERT_TRUE(reaches(s, mem, places[i], left < 10000 ? (uint32_t)left : 10000, mr)) {
			TH_LOG("%llu bytes, at %llu", (unsigned long long)size,
			       (unsigned long long)places[i]);
		}
	}
	ASSERT_FALSE(work(&s[0], IBV_WR_RDMA_WRITE, s[0].mem, (uintptr_t)mem + size - 1, mr->rkey, 2));
	ASSERT_EQ(0, ibv_get_async_event(s[1].context, &event));
	ibv_ack_async_event(&event);
	ASSERT_EQ(0, pair_reconnect(s));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F_TIMEOUT(pagelists, all_levels_with_pages_of_4_kib, 120)
{
	static const uint64_t pages[] = {
		1, 2, 6, 7, ENTRIES - 1, ENTRIES, ENTRIES + 1, 2 * ENTRIES, 5 * ENTRIES + 3,
		ENTRIES * ENTRIES - 1, ENTRIES * ENTRIES, ENTRIES * ENTRIES + 1, 2 * ENTRIES * ENTRIES,
	};
	int fd = file_of(0);

	ASSERT_GE(fd, 0);
	for (unsigned int i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		uint8_t *mem = tile_small(fd, pages[i] * 4 * KIB);

		ASSERT_NE(NULL, mem);
		check(_metadata, self->s, mem, pages[i] * 4 * KIB);
		ASSERT_EQ(0, munmap(mem, pages[i] * 4 * KIB));
	}
	close(fd);
}

TEST_F(pagelists, any_beginning_and_end_within_pages)
{
	int fd = file_of(0);
	uint8_t *mem = tile_small(fd, MIB);

	ASSERT_NE(NULL, mem);
	for (unsigned int i = 0; i < 40; i++) {
		uint64_t begin = (uint64_t)rand() % 9000, size = 1 + (uint64_t)rand() % 30000;

		check(_metadata, self->s, mem + begin, size);
	}
	ASSERT_EQ(0, munmap(mem, MIB));
	close(fd);
}

static bool write_number(const char *path, unsigned int number)
{
	char text[16];
	int fd = open(path, O_RDWR);
	ssize_t n;

	if (fd < 0)
		return false;
	if (dprintf(fd, "%u", number) < 0)
		return false;
	n = pread(fd, text, sizeof(text) - 1, 0);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return (unsigned int)atoi(text) == number;
}

#define HUGE_PAGES(kib) "/sys/kernel/mm/hugepages/hugepages-" #kib "kB/nr_hugepages"

static int huge_file(struct __test_metadata *_metadata)
{
	int fd;

	ASSERT_TRUE(write_number(HUGE_PAGES(2048), FILE_SIZE / (2 * MIB)));
	fd = file_of(MFD_HUGETLB);
	ASSERT_GE(fd, 0);
	return fd;
}

TEST_F_TIMEOUT(pagelists, pages_of_2_mib, 120)
{
	static const uint64_t sizes[] = {
		2 * MIB, 12 * MIB, 14 * MIB, GIB, GIB + 2 * MIB, 5 * GIB,
	};
	int fd = huge_file(_metadata);

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *mem = tile(fd, sizes[i]);

		ASSERT_NE(NULL, mem);
		check(_metadata, self->s, mem, sizes[i]);
		ASSERT_EQ(0, munmap(mem, sizes[i]));
	}
	close(fd);
}

/* A region that is larger than one of 4 KiB pages can be (PL-3). The kernel itself takes less than 2^32 such pages. */
TEST_F_TIMEOUT(pagelists, max_mr_size, 300)
{
	const uint64_t max = self->attr.max_mr_size, size = 192 * GIB;
	int fd = huge_file(_metadata);
	uint8_t *mem = tile(fd, size);

	ASSERT_NE(NULL, mem);
	check(_metadata, self->s, mem, size);
	EXPECT_EQ(((1ull << 32) - 2) * 4 * KIB, max);
	ASSERT_EQ(NULL, ibv_reg_mr(self->s[1].pd, mem, max + 1, ALL));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(0, munmap(mem, size));
	close(fd);
}

TEST_F(pagelists, a_page_of_1_gib)
{
	uint8_t *mem;

	if (!write_number(HUGE_PAGES(1048576), 1))
		SKIP(return, "this machine has no free page of 1 GiB");
	mem = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		   30 << MAP_HUGE_SHIFT, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	check(_metadata, self->s, mem, GIB);
	ASSERT_EQ(0, munmap(mem, GIB));
}

/* Two sides of the largest message: 2 GiB to a region that is the same MiB again and again. */
TEST_F_TIMEOUT(pagelists, max_msg_size, 120)
{
	struct side *a = &self->s[0];
	struct ibv_mr *mrs[2];
	struct ibv_port_attr port;
	struct ibv_send_wr *bad, wr = {
		.num_sge = 2, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_sge sge[2];
	struct ibv_wc wc;
	uint8_t *mem[2];
	int fds[2];

	ASSERT_EQ(0, ibv_query_port(a->context, 1, &port));
	for (unsigned int i = 0; i < 2; i++) {
		fds[i] = file_of(0);
		mem[i] = tile(fds[i], (uint64_t)port.max_msg_sz + 4096);
		ASSERT_NE(NULL, mem[i]);
		mrs[i] = ibv_reg_mr(self->s[i].pd, mem[i], (uint64_t)port.max_msg_sz + 4096, ALL);
		ASSERT_NE(NULL, mrs[i]);
	}
	for (uint64_t i = 0; i < FILE_SIZE; i += 8)
		*(uint64_t *)(mem[0] + i) = i * 0x9e3779b97f4a7c15;
	sge[0] = (struct ibv_sge){ (uintptr_t)mem[0], port.max_msg_sz, mrs[0]->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)mem[0], 0, mrs[0]->lkey };
	wr.sg_list = sge;
	wr.wr.rdma.remote_addr = (uintptr_t)mem[1];
	wr.wr.rdma.rkey = mrs[1]->rkey;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	ASSERT_TRUE(side_wait(a, &wc, 60));
	ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(0, memcmp(mem[0], mem[1], FILE_SIZE));
	sge[1].length = 1;
	ASSERT_EQ(0, ibv_post_send(a->qp, &wr, &bad));
	ASSERT_TRUE(side_wait(a, &wc, 60));
	ASSERT_EQ(IBV_WC_LOC_LEN_ERR, wc.status);
	for (unsigned int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ibv_dereg_mr(mrs[i]));
		close(fds[i]);
	}
	ASSERT_EQ(0, pair_reconnect(self->s));
	ASSERT_TRUE(pair_transfer(self->s));
}

TEST_HARNESS_MAIN
