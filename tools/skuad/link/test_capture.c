// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Captures as their readers see them: the blocks of the file, what tshark makes of it, and
 * readers that are slow or gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/capture.h"
#include "skua/cmd.h"

#define NOW	1700000000123456789ull

static const struct roce_path path4 = {
	.smac = { 0x52, 0x54, 0, 0, 0, 1 }, .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
	.sgid = { [10] = 0xff, 0xff, 192, 0, 2, 1 }, .dgid = { [10] = 0xff, 0xff, 192, 0, 2, 2 },
	.vlan = SKUA_VLAN_NONE, .sport = 0xc123, .traffic_class = 0x22, .hop_limit = 64,
};

static const struct roce_path path6 = {
	.smac = { 0x52, 0x54, 0, 0, 0, 1 }, .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
	.sgid = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 }, .dgid = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 },
	.vlan = 100, .sl = 5, .sport = 0xc123, .flow_label = 0xabcde, .hop_limit = 64,
};

static uint8_t message[SEG_MAX_BYTES];

/* A message of @bytes, with all that any kind of it could want. */
static void capture_message(struct capture *cap, enum transport transport, enum train_op op,
			    uint32_t bytes, const struct roce_path *path)
{
	struct seglist payload = { 1, bytes, { { message, bytes } } };
	struct train t = {
		.op = op, .transport = transport, .qkey = 0x11, .src_qpn = 0x654321,
		.first = true, .last = true, .ack_req = true, .syndrome = AETH_ACK,
		.dest_qpn = 0x123456, .psn = 0xfffffe, .pmtu = 1024,
		.npkts = bytes ? (bytes + 1023) / 1024 : 1, .msn = 1, .imm = 0x42,
		.swap_add = 5, .compare = 6, .flush = 0x11,
		.rkey = 0xcafe0042, .raddr = 0x1122334455667788, .msg_len = bytes, .path = path,
		.payload = bytes ? &payload : NULL,
	};

	capture_train(cap, !train_is_response(op), NOW, &t);
}

/* May it have any number of bytes? */
static bool has_payload(enum train_op op)
{
	return op != TRAIN_READ_REQ && op != TRAIN_ACK && op < TRAIN_CMP_SWAP;
}

/* Every kind of message, of one packet and of three, a CNP and an ARP request. */
static unsigned int capture_everything(struct capture *cap, const struct roce_path *path)
{
	static uint8_t arp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0, 0, 0, 1, 8,
				   6, 0, 1, 8, 0, 6, 4, 0, 1 };
	struct seglist frame = { 2, 60, { { arp, 30 }, { arp + 30, 30 } } };
	unsigned int packets = 2;

	capture_message(cap, TRANSPORT_CNP, TRAIN_CNP, 0, path);
	for (int op = 0; op < TRAIN_CNP; op++) {
		uint32_t word = op == TRAIN_ATOMIC_WRITE ? 8 : 0;

		capture_message(cap, TRANSPORT_RC, op, has_payload(op) ? 7 : word, path);
		capture_message(cap, TRANSPORT_RC, op, has_payload(op) ? 2051 : word, path);
		packets += has_payload(op) ? 4 : 2;
		if (op == TRAIN_FLUSH || op == TRAIN_ATOMIC_WRITE)
			continue;
		capture_message(cap, TRANSPORT_XRC, op, has_payload(op) ? 7 : 0, path);
		capture_message(cap, TRANSPORT_XRC, op, has_payload(op) ? 2051 : 0, path);
		packets += has_payload(op) ? 4 : 2;
		if (op > TRAIN_WRITE_IMM || op == TRAIN_SEND_INV)
			continue;
		capture_message(cap, TRANSPORT_UC, op, 7, path);
		capture_message(cap, TRANSPORT_UC, op, 2051, path);
		packets += 4;
		if (op > TRAIN_SEND_IMM)
			continue;
		/* An empty one is too short for tshark, which takes it for Ethernet over IB. */
		capture_message(cap, TRANSPORT_UD, op, 7, path);
		capture_message(cap, TRANSPORT_UD, op, 1023, path);
		packets += 2;
	}
	capture_frame(cap, true, NOW, &frame);
	return packets;
}

static int temp_file(char *name)
{
	strcpy(name, "/tmp/skuad-test-XXXXXX");
	return mkstemp(name);
}

struct blocks {
	unsigned int shb, idb, epb, isb, out, dropped;
};

/* Walks a whole file; it must consist of whole blocks. */
static void read_blocks(const char *name, struct blocks *b)
{
	FILE *f = fopen(name, "r");
	uint32_t head[2], tail;
	uint8_t *body;

	memset(b, 0, sizeof(*b));
	assert_non_null(f);
	while (fread(head, 4, 2, f) == 2) {
		assert_true(head[1] >= 12 && head[1] % 4 == 0 && head[1] < 100000);
		body = test_malloc(head[1] - 12);
		assert_int_equal(fread(body, 1, head[1] - 12, f), head[1] - 12);
		assert_int_equal(fread(&tail, 4, 1, f), 1);
		assert_int_equal(tail, head[1]);
		b->shb += head[0] == 0x0a0d0d0a;
		b->idb += head[0] == 1;
		b->isb += head[0] == 5;
		if (head[0] == 6) {
			uint32_t caplen, opt, flags;

			memcpy(&caplen, body + 12, 4);
			opt = 20 + ((caplen + 3) & ~3u);
			assert_int_equal(body[opt], 2);
			memcpy(&flags, body + opt + 4, 4);
			b->epb++;
			b->out += flags == 2;
			b->dropped += body[opt + 8] == 4;
		}
		test_free(body);
	}
	assert_true(feof(f));
	fclose(f);
}

static void a_file_is_whole_blocks_with_directions(void **state)
{
	uint64_t written, lost;
	struct capture *cap;
	unsigned int packets;
	struct blocks b;
	char name[32];

	(void)state;
	cap = capture_open(temp_file(name), "skua0");
	assert_non_null(cap);
	packets = capture_everything(cap, &path4);
	capture_close(cap, &written, &lost);
	assert_int_equal(written, packets);
	assert_int_equal(lost, 0);

	read_blocks(name, &b);
	assert_int_equal(b.shb, 1);
	assert_int_equal(b.idb, 1);
	assert_int_equal(b.isb, 1);
	assert_int_equal(b.epb, packets);
	assert_int_equal(b.out, packets - 2 * (4 + 2 + 2));	/* responses and ACKs came in, of RC and XRC */
	assert_int_equal(b.dropped, 0);
	unlink(name);
}

/* The last line that @command prints, as a number. */
static int shell_count(const char *fmt, const char *name)
{
	char command[640], line[256] = "";
	int count = -1;
	FILE *f;

	snprintf(command, sizeof(command), fmt, name);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		count = atoi(line);
	assert_int_equal(pclose(f), 0);
	return count;
}

/*
 * Without the dissector of NFS over RDMA: its heuristics read past the end of any SEND of
 * less than 13 bytes, whoever made it, and then call it malformed (seen in 4.0.17).
 */
#define TSHARK	"tshark -n --disable-protocol rpcordma -r "

static void check_with_tshark(const struct roce_path *path, const char *ip)
{
	uint64_t written, lost;
	struct capture *cap;
	char name[32], command[512];

	if (system("tshark --version >/dev/null 2>&1"))
		skip();
	cap = capture_open(temp_file(name), "skua0");
	assert_non_null(cap);
	capture_everything(cap, path);
	capture_close(cap, &written, &lost);

	assert_int_equal(shell_count(TSHARK "%s 2>/dev/null | wc -l", name), written);
	/* A checksum of 0 over IPv6 is what RoCEv2 sends; all else would be an error. */
	assert_int_equal(shell_count(TSHARK "%s -Y '_ws.malformed || _ws.short || "
				     "(_ws.expert.severity >= 8388608 && ! ipv6)' 2>/dev/null | "
				     "tee -a /dev/stderr | wc -l", name), 0);
	/* The 16 bytes of a CNP and its ICRC are one to tshark, and it knows no more of XRC than the opcodes. */
	snprintf(command, sizeof(command), TSHARK "%%s -Y '%s && (infiniband.invariant.crc || "
		 "infiniband.bth.opcode == 0x81 || infiniband.bth.opcode >= 0xa0) && frame.interface_name == skua0' 2>/dev/null | "
		 "wc -l", ip);
	assert_int_equal(shell_count(command, name), written - 1);
	unlink(name);
}

static void tshark_finds_nothing_wrong_over_ipv4(void **state)
{
	(void)state;
	check_with_tshark(&path4, "ip.dsfield == 0x22 && ip.flags.df == 1");
}

static void tshark_finds_nothing_wrong_over_ipv6_and_vlan(void **state)
{
	(void)state;
	check_with_tshark(&path6, "ipv6.flow == 0xabcde && vlan.id == 100 && vlan.priority == 5");
}

static void a_frame_too_long_is_cut_and_says_so(void **state)
{
	struct seglist frame = { 1, 20000, { { message, 20000 } } };
	uint64_t written, lost;
	struct capture *cap;
	struct blocks b;
	char name[32];

	(void)state;
	cap = capture_open(temp_file(name), "skua0");
	capture_frame(cap, true, NOW, &frame);
	capture_close(cap, &written, &lost);
	read_blocks(name, &b);
	assert_int_equal(b.epb, 1);
	unlink(name);
}

static bool ended(const struct capture *cap, int ms)
{
	struct pollfd pfd = { .fd = capture_event_fd(cap), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static void a_reader_that_is_gone_ends_the_capture(void **state)
{
	uint64_t written, lost;
	struct capture *cap;
	int pipefd[2];

	(void)state;
	assert_int_equal(pipe(pipefd), 0);
	cap = capture_open(pipefd[1], "skua0");
	capture_message(cap, TRANSPORT_RC, TRAIN_SEND, 7, &path4);
	assert_false(ended(cap, 50));
	close(pipefd[0]);
	assert_true(ended(cap, 5000));		/* though nothing more was sent */
	assert_int_equal(capture_error(cap), EPIPE);
	capture_message(cap, TRANSPORT_RC, TRAIN_SEND, 7, &path4);
	capture_close(cap, &written, &lost);
}

/* 64 MiB into a pipe that nobody reads: what has no room is lost, nothing waits. */
static void a_reader_that_stands_still_costs_packets_only(void **state)
{
	uint64_t written, lost;
	struct capture *cap;
	int pipefd[2];

	(void)state;
	assert_int_equal(pipe(pipefd), 0);
	cap = capture_open(pipefd[1], "skua0");
	for (int i = 0; i < 1024; i++)
		capture_message(cap, TRANSPORT_RC, TRAIN_WRITE, SEG_MAX_BYTES, &path4);
	assert_int_equal(capture_error(cap), 0);
	capture_close(cap, &written, &lost);
	assert_true(lost > 50 * 1024);
	assert_int_equal(written + lost, 64 * 1024);
	close(pipefd[0]);
}

struct reader {
	int fd;
	const char *name;
};

/* Reads on to the end. */
static void *read_all(void *arg)
{
	struct reader *r = arg;
	FILE *f = fopen(r->name, "w");
	char buf[65536];
	ssize_t n;

	while ((n = read(r->fd, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, n, f);
	fclose(f);
	return NULL;
}

static void a_loss_stands_in_the_next_packet(void **state)
{
	uint64_t written, lost;
	struct reader r;
	struct capture *cap;
	pthread_t thread;
	struct blocks b;
	char name[32];
	int pipefd[2];

	(void)state;
	close(temp_file(name));
	assert_int_equal(pipe(pipefd), 0);
	cap = capture_open(pipefd[1], "skua0");
	for (int i = 0; i < 256; i++)
		capture_message(cap, TRANSPORT_RC, TRAIN_WRITE, SEG_MAX_BYTES, &path4);
	/* Nobody has read yet. Soon there is room again. */
	r = (struct reader){ pipefd[0], name };
	pthread_create(&thread, NULL, read_all, &r);
	for (int i = 0; i < 20; i++) {
		usleep(50000);
		capture_message(cap, TRANSPORT_RC, TRAIN_ACK, 0, &path4);
	}
	capture_close(cap, &written, &lost);
	pthread_join(thread, NULL);
	close(pipefd[0]);

	read_blocks(name, &b);
	assert_int_equal(b.epb, written);
	assert_int_equal(written + lost, 256 * 64 + 20);
	assert_true(lost > 0);
	assert_true(b.dropped > 0);
	assert_int_equal(b.isb, 1);
	unlink(name);
}

/* A limit on the size of files stands in for a disk that is full. */
static void a_full_disk_ends_the_capture_at_a_whole_block(void **state)
{
	struct rlimit old, limit;
	uint64_t written, lost;
	struct capture *cap;
	struct blocks b;
	char name[32];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 100000;
	cap = capture_open(temp_file(name), "skua0");
	setrlimit(RLIMIT_FSIZE, &limit);
	for (int i = 0; i < 4; i++)
		capture_message(cap, TRANSPORT_RC, TRAIN_WRITE, SEG_MAX_BYTES, &path4);
	assert_true(ended(cap, 5000));
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(capture_error(cap), EFBIG);
	capture_close(cap, &written, &lost);
	assert_in_range(written + lost, 80, 256);

	read_blocks(name, &b);
	assert_int_equal(b.epb, written);
	assert_true(written > 80 && written < 100);
	unlink(name);
}

static void *capture_a_lot(void *cap)
{
	for (int i = 0; i < 500; i++)
		capture_message(cap, TRANSPORT_RC, TRAIN_WRITE, 3000, &path4);
	return NULL;
}

static void two_engines_may_write_at_once(void **state)
{
	pthread_t threads[2];
	uint64_t written, lost;
	struct capture *cap;
	struct blocks b;
	char name[32];

	(void)state;
	cap = capture_open(temp_file(name), "skua0");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, capture_a_lot, cap);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	capture_close(cap, &written, &lost);
	assert_int_equal(written + lost, 2 * 500 * 3);
	read_blocks(name, &b);
	assert_int_equal(b.epb, written);
	unlink(name);
}

static void a_bad_descriptor_is_refused(void **state)
{
	(void)state;
	assert_null(capture_open(-1, "skua0"));
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_whole_blocks_with_directions),
		cmocka_unit_test(tshark_finds_nothing_wrong_over_ipv4),
		cmocka_unit_test(tshark_finds_nothing_wrong_over_ipv6_and_vlan),
		cmocka_unit_test(a_frame_too_long_is_cut_and_says_so),
		cmocka_unit_test(a_reader_that_is_gone_ends_the_capture),
		cmocka_unit_test(a_reader_that_stands_still_costs_packets_only),
		cmocka_unit_test(a_loss_stands_in_the_next_packet),
		cmocka_unit_test(a_full_disk_ends_the_capture_at_a_whole_block),
		cmocka_unit_test(two_engines_may_write_at_once),
		cmocka_unit_test(a_bad_descriptor_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
