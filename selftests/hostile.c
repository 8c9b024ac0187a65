// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An unprivileged program that misuses all that the NIC lets it write to, until it gets SIGTERM:
 *
 *   hostile doorbells              rings its doorbell pages: random offsets, widths and values, numbers of
 *                                  QPs and CQs that are not its own, and its own with random indices
 *   hostile rings                  writes over its SQs, RQs, CQs and doorbell records while the device uses
 *                                  them: random bytes, random indices, WQEs that are half valid
 *
 * These are to compare with:
 *
 *   hostile doorbells harmless     the same verbs calls and stores, but the stores go to ordinary memory: this
 *   hostile rings harmless         takes the same share of the guest's processors, and nothing of the NIC
 *
 * In the end it prints how many doorbells it rang, and how many of them the device has to count as bad.
 *
 * The rings are found by defining posix_memalign(), from which the provider has them; the doorbell pages in
 * /proc/self/maps.
 */
#include <grp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <skua/doorbell.h>
#include <skua/wqe.h>

#include "pair.h"

#define PAGE		4096
#define NOBODY		65534
#define CYCLE_NS	20000000	/* of one set of queues: most are in an error state by then */
#define BATCH		256		/* stores between two looks at the clock */

/* In the order in which pair_open_of() allocates them. */
enum { CQ_A, CQ_B, QP_A, QP_B, BUFFERS };

/*
 * The provider's layout of a QP with PAIR_WRS requests of PAIR_SGES SGEs in each queue: 32 blocks of WQEs, 16
 * receives of 128 bytes, the records. Another layout would make this program less hostile, nothing else.
 */
#define SQ_BLOCKS	32
#define RECORDS		4096

static uint8_t *buffers[BUFFERS];
static size_t sizes[BUFFERS];
static unsigned int n_buffers;

static uint8_t *doorbells[2];		/* skua_0's page and skua_1's */
static uint8_t ordinary[PAGE] __attribute__((aligned(PAGE)));
static uint64_t rung, bad;		/* doorbells; those that the device counts */
static volatile sig_atomic_t ended;

static bool harmless;

/* The provider calls it for each ring. */
int posix_memalign(void **memory, size_t alignment, size_t size)
{
	*memory = aligned_alloc(alignment, size);
	if (*memory && alignment == PAGE && n_buffers < BUFFERS) {
		buffers[n_buffers] = *memory;
		sizes[n_buffers++] = size;
	}
	return *memory ? 0 : 12;
}

/* splitmix64 */
static uint64_t next_random(void)
{
	static uint64_t state = 1;
	uint64_t x = state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint32_t below(uint32_t limit)
{
	return (uint32_t)(next_random() % limit);
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void end(int signal)
{
	ended = 1;
}

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	exit(1);
}

/* Of what is mapped of uverbs, the doorbell page is what can be written to. */
static uint8_t *find_doorbells(const struct side *side)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], perms[8], name[80];
	unsigned long start;
	uint8_t *page = NULL;

	must(maps, "/proc/self/maps");
	snprintf(name, sizeof(name), "/%s\n", side->context->device->dev_name);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, name) && sscanf(line, "%lx-%*x %7s", &start, perms) == 2 && perms[1] == 'w')
			page = (uint8_t *)start;
	fclose(maps);
	must(page, "doorbell page");
	return page;
}

static void store64(uint8_t *to, uint64_t value)
{
	*(volatile uint64_t *)to = value;
}

static void store32(uint8_t *to, uint32_t value)
{
	*(volatile uint32_t *)to = value;
}

/* One doorbell to either NIC. */
static void ring(const struct side s[2])
{
	static const unsigned int offsets[] = { SKUA_DB_SQ, SKUA_DB_CQ_ARM };
	unsigned int which = below(2);
	uint8_t *page = doorbells[which];
	uint64_t value = next_random();
	uint32_t own = s[which].qp->qp_num;

	rung++;
	switch (below(8)) {
	case 0:		/* DBP-1: another offset, or another width */
		bad++;
		store64(page + 0x18 + 8 * below((PAGE - 0x18) / 8), value);
		break;
	case 1:
		bad++;
		store32(page + 4 * below(PAGE / 4), (uint32_t)value);
		break;
	case 2:
		bad++;
		page[below(PAGE)] = (uint8_t)value;
		break;
	case 3:		/* DBP-2: the command ring of the driver */
		bad++;
		store64(page + SKUA_DB_CMD, value);
		break;
	case 4:		/* DBP-4: its own QP, with any index */
		store64(page + SKUA_DB_SQ, SKUA_DB(own, below(2) ? below(64) : (uint32_t)value));
		break;
	case 5:		/* DBP-2: a number that differs from its own by a bit */
		bad++;
		store64(page + SKUA_DB_SQ, SKUA_DB(own ^ 1u << below(32), value));
		break;
	default:	/* any number; that it is an object of this program is next to impossible */
		bad++;
		store64(page + offsets[below(2)], value);
	}
}

/* A WQE of the right shape whose fields are mostly right. */
static void forge(const struct side s[2], unsigned int which)
{
	const struct side *from = &s[which], *to = &s[!which];
	uint8_t *block = buffers[QP_A + which] + SKUA_WQE_BLOCK * below(SQ_BLOCKS);
	struct skua_wqe_ctrl ctrl = {
		.opcode = 1 + below(10), .flags = below(8) ? below(8) : next_random(),
		.nblocks = below(8) ? 1 : next_random(), .num_sge = below(8) ? 1 : next_random(),
		.cookie = next_random(), .length = below(8) ? 0 : next_random(),
	};
	struct skua_wqe_rdma rdma = {
		.raddr = (uintptr_t)to->mem + below(PAIR_MEM),
		.rkey = below(8) ? to->mr->rkey : next_random(),
	};
	struct skua_sge sge = {
		.addr = (uintptr_t)from->mem + below(PAIR_MEM), .length = below(2000),
		.lkey = below(8) ? from->mr->lkey : next_random(),
	};

	memcpy(block, &ctrl, sizeof(ctrl));
	memcpy(block + 16, &rdma, sizeof(rdma));
	memcpy(block + 32, &sge, sizeof(sge));
}

static void scribble(const struct side s[2])
{
	unsigned int which = below(BUFFERS), qp = QP_A + below(2);

	switch (below(16)) {
	case 0:
		if (!below(8))
			ring(s);
		break;
	case 1:		/* the SQ's index or the RQ's: a little more, or anything */
		store32(buffers[qp] + RECORDS + 64 * below(2), below(4) ? below(2 * SQ_BLOCKS) : next_random());
		break;
	case 2:		/* the words behind it, the device's own among them */
		store64(buffers[qp] + RECORDS + 8 * below(16), next_random());
		break;
	case 3:
	case 4:		/* anything anywhere */
		store32(buffers[which] + 4 * below((uint32_t)sizes[which] / 4), (uint32_t)next_random());
		break;
	case 5:		/* a small number where a record, a WQE or a CQE may begin */
		store32(buffers[which] + 64 * below((uint32_t)sizes[which] / 64), below(256));
		break;
	default:
		forge(s, qp - QP_A);
	}
}

static void use_ordinary_memory(void)
{
	static uint8_t memory[BUFFERS][4 * PAGE];

	for (unsigned int i = 0; i < BUFFERS; i++) {
		buffers[i] = memory[i];
		sizes[i] = sizes[i] < sizeof(memory[i]) ? sizes[i] : sizeof(memory[i]);
	}
}

/* One set of queues: RC, then UD. */
static void cycle(bool doorbells_only)
{
	static unsigned int number;
	bool datagrams = !doorbells_only && number++ % 4 == 3;
	struct side s[2];
	int64_t stop;

	n_buffers = 0;
	must(!(datagrams ? pair_open_of(s, IBV_QPT_UD) : pair_open(s)), "opening the NICs");
	must(n_buffers == BUFFERS, "rings");
	for (unsigned int i = 0; datagrams && i < 2; i++)
		must(!qp_ud_to_rts(s[i].qp, 0x1234), "QP to RTS");
	for (unsigned int i = 0; i < 2; i++)
		doorbells[i] = harmless ? ordinary : find_doorbells(&s[i]);
	if (harmless)
		use_ordinary_memory();
	for (stop = now() + CYCLE_NS; !ended && (doorbells_only || now() < stop);) {
		for (unsigned int i = 0; i < BATCH; i++) {
			if (doorbells_only)
				ring(s);
			else
				scribble(s);
		}
	}
	pair_close(s);
}

int main(int argc, char **argv)
{
	bool doorbells_only = argc > 1 && !strcmp(argv[1], "doorbells");
	uint64_t cycles = 0;

	harmless = argc == 3 && !strcmp(argv[2], "harmless");
	if (argc != 2 + harmless || (!doorbells_only && strcmp(argv[1], "rings"))) {
		fprintf(stderr, "usage: hostile doorbells|rings [harmless]\n");
		return 2;
	}
	must(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY), "dropping privileges");
	signal(SIGTERM, end);
	for (; !ended; cycles++)
		cycle(doorbells_only);
	printf("%" PRIu64 " doorbells, %" PRIu64 " bad, %" PRIu64 " sets of queues\n", rung,
	       harmless ? 0 : bad, cycles);
	return 0;
}
