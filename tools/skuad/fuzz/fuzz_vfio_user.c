// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A client of the vfio-user server, from its first byte on, with a whole device behind it.
 *
 * Steps are messages, sound ones and such as are wrong in a word, in their length, their
 * descriptors or their place; bytes that are no message; and what else a client can do: write and
 * cut its memory, leave, come again, bring another. Whatever it did, the next client is served.
 */
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/closer.h"
#include "base/engine.h"
#include "base/farewell.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "nic/dev.h"
#include "pci/config_space.h"
#include "pci/vfio_user.h"
#include "pci/vfio_user_proto.h"
#include "skua/cmd.h"
#include "skua/doorbell.h"
#include "skua/regs.h"

#define MEMORY		(1u << 20)
#define MAX_ROUNDS	100000

enum verb {
	RAW, VERSION, MAP, UNMAP, INFO, IRQS, READ, WRITE, RESET, ANY, STORE, CUT, SECOND, AGAIN,
	LISTEN, WAIT, NUM_VERBS
};

/* Descriptors that may come with a message. */
enum fd_kind { FD_USUAL, FD_NONE, FD_MEMORY, FD_READ_ONLY, FD_EVENT, FD_PIPE, FD_FILE, FD_SOCKET,
	       NUM_FD_KINDS };

struct client {
	struct engine *engine;
	struct vfu *vfu;
	int conn, second;	/* our ends; -1: none */
	int fds[NUM_FD_KINDS];
};

/* In place of base/log.c: lines are made, and that is all. */
enum log_level log_get_level(void)
{
	return LOG_LEVEL_DEBUG;
}

void log_line(enum log_level level, const char *name, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	(void)level;
	va_start(ap, fmt);
	CHECK(name && vsnprintf(line, sizeof(line), fmt, ap) > 0);
	va_end(ap);
}

/* In place of base/closer.c: without a thread, whose progress would depend on chance. */
struct closer *closer_create(unsigned int room)
{
	return malloc(room);
}

void closer_destroy(struct closer *c)
{
	free(c);
}

void closer_fd(struct closer *c, int fd)
{
	CHECK(c && !close(fd));
}

void closer_connection(struct closer *c, int fd)
{
	farewell(fd);
	closer_fd(c, fd);
}

void closer_unmap(struct closer *c, void *base, uint64_t size, uint64_t page)
{
	CHECK(c && size && page && !munmap(base, size));
}

bool closer_is_full(const struct closer *c)
{
	CHECK(c);
	return false;
}

uint64_t closer_bytes(const struct closer *c)
{
	CHECK(c);
	return 0;
}

static void work(struct client *c)
{
	int i;

	for (i = 0; i < MAX_ROUNDS && engine_step(c->engine); i++)
		;
	CHECK(i < MAX_ROUNDS);
}

static int join(struct client *c)
{
	int pair[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	vfu_serve(c->vfu, pair[0]);
	return pair[1];
}

static void leave(struct client *c)
{
	if (c->conn >= 0)
		close(c->conn);
	c->conn = -1;
	work(c);
}

/* The server may have had enough: then nothing is sent. */
static void send_with(struct client *c, const void *data, size_t len, enum fd_kind kind,
		      unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(32 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[32];

	if (nfds && kind != FD_NONE) {
		struct cmsghdr *cm = &control.align;

		for (unsigned int i = 0; i < nfds; i++)
			fds[i] = c->fds[kind];
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	if (sendmsg(c->conn, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

struct message {
	struct vfio_user_hdr hdr;
	uint8_t body[VFIO_USER_MAX_MSG];
	size_t len;		/* of the body */
	enum fd_kind kind;	/* of its descriptors */
	unsigned int nfds;
};

#define BODY(m, command_, ...) do {					\
	__VA_ARGS__;							\
									\
	(m)->hdr.command = command_;					\
	(m)->len = sizeof(b);						\
	memcpy((m)->body, &b, sizeof(b));				\
} while (0)

static void make_info(struct message *m, const struct step *s)
{
	switch (s->a % 3) {
	case 0:
		BODY(m, VFIO_USER_DEVICE_GET_INFO, struct vfio_user_device_info b = { .argsz = sizeof(b) });
		break;
	case 1:
		BODY(m, VFIO_USER_DEVICE_GET_REGION_INFO,
		     struct vfio_user_region_info b = { .argsz = sizeof(b), .index = s->n[0] });
		break;
	default:
		BODY(m, VFIO_USER_DEVICE_GET_IRQ_INFO,
		     struct vfio_user_irq_info b = { .argsz = sizeof(b), .index = s->n[0] });
	}
}

static void make_irqs(struct message *m, const struct step *s)
{
	static const uint32_t flags[] = {
		VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
		VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
		VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_MASK,
	};

	BODY(m, VFIO_USER_DEVICE_SET_IRQS, struct vfio_user_irq_set b = {
		sizeof(b), flags[s->a % 3], VFIO_PCI_MSIX_IRQ_INDEX, s->n[0] % 65, s->n[1] % 18 });
	m->kind = FD_EVENT;
	m->nfds = s->a % 3 ? 0 : s->n[1] % 18;
}

/* Regions 0 and 2 are BARs; 7 is configuration space, read and written at any length. */
static void make_access(struct message *m, const struct step *s)
{
	static const uint32_t regions[] = { 0, 2, VFIO_PCI_CONFIG_REGION_INDEX };
	uint32_t region = regions[s->a % 3];
	uint32_t count = region < 7 ? 1u << s->n[1] % 4 : s->n[1] % 33;
	bool write = s->verb % NUM_VERBS == WRITE;

	BODY(m, write ? VFIO_USER_REGION_WRITE : VFIO_USER_REGION_READ,
	     struct vfio_user_region_access b = { s->n[0], region, count });
	if (!write)
		return;
	memcpy(m->body + m->len, region < 7 ? (const uint8_t *)s->v : s->bytes, count);
	m->len += count;
}

static void make(struct message *m, const struct step *s)
{
	memset(m, 0, sizeof(*m));
	switch (s->verb % NUM_VERBS) {
	case VERSION:
		BODY(m, VFIO_USER_VERSION, struct vfio_user_version b = { (uint16_t)s->n[0], 0 });
		m->len += s->n[1] % 33;
		memcpy(m->body + 4, s->bytes, s->n[1] % 33);
		break;
	case MAP:
		BODY(m, VFIO_USER_DMA_MAP, struct vfio_user_dma_map b = {
			sizeof(b), s->a ? s->a : 3, s->n[0] * 4096ull, s->v[0], s->n[1] * 4096ull });
		m->kind = FD_MEMORY;
		m->nfds = 1;
		break;
	case UNMAP:
		BODY(m, VFIO_USER_DMA_UNMAP, struct vfio_user_dma_unmap b = {
			sizeof(b), s->a, s->v[0], s->n[1] * 4096ull });
		break;
	case INFO:
		make_info(m, s);
		break;
	case IRQS:
		make_irqs(m, s);
		break;
	case READ:
	case WRITE:
		make_access(m, s);
		break;
	case RESET:
		m->hdr.command = VFIO_USER_DEVICE_RESET;
		break;
	default:
		m->hdr.command = (uint16_t)s->n[0];
		m->len = s->a % 33;
		memcpy(m->body, s->bytes, m->len);
	}
}

/* @b: other descriptors, or more of them; @c: one thing wrong; n[2]: by how much. */
static void send_message(struct client *c, const struct step *s)
{
	static struct message m;
	uint32_t word;

	make(&m, s);
	if (s->b % NUM_FD_KINDS)
		m.kind = s->b % NUM_FD_KINDS;
	m.nfds = (m.nfds + (s->b >> 3)) % 20;
	m.hdr.id = s->verb;
	m.hdr.size = (uint32_t)(sizeof(m.hdr) + m.len);
	switch (s->c % 8) {
	case 1:
		m.hdr.size += s->n[2] % 64;
		break;
	case 2:
		m.len = s->n[2] % (m.len + 1);
		m.hdr.size = (uint32_t)(sizeof(m.hdr) + m.len);
		break;
	case 3:
		m.hdr.size = s->n[2];
		break;
	case 4:
		m.hdr.flags = s->n[2];
		break;
	case 5:
		memcpy(&word, m.body + s->c / 8 % 12 * 4, 4);
		word ^= s->n[2];
		memcpy(m.body + s->c / 8 % 12 * 4, &word, 4);
		break;
	case 6:		/* in two pieces, descriptors with the first */
		send_with(c, &m.hdr, 1 + s->n[2] % 15, m.kind, m.nfds);
		work(c);
		send_with(c, (uint8_t *)&m.hdr + 1 + s->n[2] % 15,
			  sizeof(m.hdr) + m.len - 1 - s->n[2] % 15, m.kind, s->c / 8 % 18);
		return;
	}
	send_with(c, &m.hdr, sizeof(m.hdr) + m.len, m.kind, m.nfds);
}

/* Take replies, so that there is room for more. */
static void listen_to(struct client *c)
{
	uint8_t buf[4096];

	while (recv(c->conn, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

static void second(struct client *c, const struct step *s)
{
	if (c->second < 0) {
		c->second = join(c);
		return;
	}
	if (s->a % 2 && send(c->second, s->bytes, s->n[0] % 33, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
	if (s->a % 4 < 2) {
		close(c->second);
		c->second = -1;
	}
}

static void play(struct client *c, const struct step *s)
{
	switch (s->verb % NUM_VERBS) {
	case RAW:
		send_with(c, s->bytes, s->a % 33, s->b % NUM_FD_KINDS, (s->b >> 3) % 20);
		break;
	case STORE:
		CHECK(pwrite(c->fds[FD_MEMORY], s->bytes, 32, s->n[0] % (MEMORY - 32)) == 32);
		break;
	case CUT:
		CHECK(!ftruncate(c->fds[FD_MEMORY], s->n[0] % (2 * MEMORY)));
		break;
	case SECOND:
		second(c, s);
		break;
	case AGAIN:
		leave(c);
		c->conn = join(c);
		break;
	case LISTEN:
		listen_to(c);
		break;
	case WAIT:
		engine_clock_advance(c->engine, s->n[0]);
		break;
	default:
		send_message(c, s);
		if (s->a & 0x80)	/* the next one may come in the same breath */
			return;
	}
	work(c);
}

/* Nothing of the one before is left over. */
static void serve_sound_client(struct client *c)
{
	static const struct step hello = { .verb = VERSION };
	static const struct step signature = { .verb = READ, .n[1] = 2 };
	struct message m;
	uint32_t word;
	uint8_t reply[4096];

	c->conn = join(c);
	send_message(c, &hello);
	make(&m, &signature);
	send_message(c, &signature);
	work(c);
	CHECK(recv(c->conn, reply, sizeof(m.hdr), MSG_DONTWAIT) == sizeof(m.hdr));
	memcpy(&m.hdr, reply, sizeof(m.hdr));
	CHECK(m.hdr.flags == VFIO_USER_F_REPLY && m.hdr.size <= sizeof(reply));
	CHECK(recv(c->conn, reply, m.hdr.size - sizeof(m.hdr), MSG_DONTWAIT) > 0);
	CHECK(recv(c->conn, reply, sizeof(reply), MSG_DONTWAIT) ==
	      sizeof(m.hdr) + sizeof(struct vfio_user_region_access) + 4);
	memcpy(&word, reply + sizeof(m.hdr) + sizeof(struct vfio_user_region_access), 4);
	CHECK(word == SKUA_SIGNATURE);
}

static void open_fds(struct client *c)
{
	static int file = -1, event, pipes[2], sockets[2];
	char path[32];

	if (file < 0) {
		file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		event = eventfd(0, EFD_CLOEXEC);
		CHECK(file >= 0 && event >= 0 && !pipe(pipes));
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	}
	c->fds[FD_MEMORY] = memfd_create("guest", MFD_CLOEXEC);
	CHECK(!ftruncate(c->fds[FD_MEMORY], MEMORY));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->fds[FD_MEMORY]);
	c->fds[FD_READ_ONLY] = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(c->fds[FD_READ_ONLY] >= 0);
	c->fds[FD_EVENT] = event;
	c->fds[FD_PIPE] = pipes[1];
	c->fds[FD_FILE] = file;
	c->fds[FD_SOCKET] = sockets[0];
}

static void fuzz_run(const struct step *steps, unsigned int n)
{
	struct skua_dev_config config = { .name = "fuzz", .link = "wire:fuzz", .mac = { 2 } };
	struct client c = { .second = -1 };

	open_fds(&c);
	c.engine = engine_create(true);
	c.vfu = vfu_create(c.engine, NULL, &config);
	CHECK(c.vfu);
	c.conn = join(&c);
	for (unsigned int i = 0; i < n; i++)
		play(&c, &steps[i]);
	if (c.second >= 0)
		close(c.second);
	leave(&c);
	/* In a flood of doorbells the server looks at its socket, for a part of what is there, only
	 * now and then: it is a while until it sees that the client has left. */
	for (unsigned int i = 0; i < FUZZ_MAX_STEPS; i++) {
		engine_clock_advance(c.engine, 1000000);
		work(&c);
	}
	serve_sound_client(&c);
	leave(&c);
	vfu_destroy(c.vfu);
	engine_destroy(c.engine);
	close(c.fds[FD_MEMORY]);
	close(c.fds[FD_READ_ONLY]);
}

#define HELLO		{ .verb = VERSION }
#define MAPPED		{ .verb = MAP, .n[1] = MEMORY / 4096 }
#define CONFIG(at, len, ...) { .verb = WRITE, .a = 2, .n = { at, len }, .bytes = { __VA_ARGS__ } }
#define REG(at, value)	{ .verb = WRITE, .n = { at, 2 }, .v[0] = value }
#define MASTER		CONFIG(PCI_COMMAND, 2, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY)
#define RING		0x1000
#define CPL		0x2000
#define RECORD		0x3000
#define ENABLED \
	REG(SKUA_REG_CMD_RING_LO, RING), REG(SKUA_REG_CMD_CPL_LO, CPL), \
	REG(SKUA_REG_CMD_DBR_LO, RECORD), REG(SKUA_REG_CMD_LOG_SIZE, 2), \
	REG(SKUA_REG_CONTROL, SKUA_CONTROL_ENABLE)
#define BAD_DOORBELL \
	{ .verb = WRITE, .a = 1, .n = { SKUA_DB_SQ, 3 }, .v[0] = SKUA_DB(5, 1) }
#define BAD_DOORBELLS \
	BAD_DOORBELL, BAD_DOORBELL, BAD_DOORBELL, BAD_DOORBELL, BAD_DOORBELL

static void fuzz_seeds(void)
{
	/* What QEMU and a driver send. */
	FUZZ_SEED("describe", HELLO, { .verb = INFO }, { .verb = INFO, .a = 1 },
		  { .verb = INFO, .a = 1, .n = { 7 } }, { .verb = INFO, .a = 2, .n = { 2 } },
		  { .verb = READ, .a = 2, .n[1] = 32 }, { .verb = LISTEN });
	FUZZ_SEED("memory", HELLO, MAPPED, { .verb = UNMAP, .n[1] = MEMORY / 4096 },
		  { .verb = MAP, .n = { 1, 3 }, .v[0] = 0x100000, .a = 1 },
		  { .verb = MAP, .n = { 0, 2 }, .v[0] = 0x200000, .b = FD_NONE },
		  { .verb = UNMAP, .a = VFIO_DMA_UNMAP_FLAG_ALL }, { .verb = RESET });
	FUZZ_SEED("interrupts", HELLO, { .verb = IRQS, .n = { 0, 4 } }, { .verb = IRQS, .a = 1 },
		  { .verb = IRQS, .a = 1, .n = { 0, 3 } },
		  CONFIG(CONFIG_CAP_MSIX + PCI_MSIX_FLAGS, 2, 0, PCI_MSIX_FLAGS_ENABLE >> 8),
		  REG(SKUA_MSIX_TABLE_OFFSET, 1), { .verb = READ, .n = { SKUA_MSIX_PBA_OFFSET, 3 } });
	FUZZ_SEED("commands", HELLO, MAPPED, MASTER, ENABLED,
		  { .verb = STORE, .n = { RING }, .bytes = { SKUA_CMD_NOP, 0, SKUA_CMD_EVENT } },
		  { .verb = STORE, .n = { RECORD }, .bytes = { 1 } },
		  { .verb = WRITE, .a = 1, .n = { SKUA_DB_CMD, 3 }, .v[0] = SKUA_DB(0, 1) },
		  { .verb = READ, .n = { SKUA_REG_STATUS, 2 } },
		  CONFIG(CONFIG_CAP_EXP + PCI_EXP_DEVCTL, 2, 0, PCI_EXP_DEVCTL_BCR_FLR >> 8));
	FUZZ_SEED("power", HELLO, MAPPED, MASTER, ENABLED,
		  CONFIG(CONFIG_CAP_PM + PCI_PM_CTRL, 2, 3), { .verb = READ, .n[1] = 2 },
		  CONFIG(CONFIG_CAP_PM + PCI_PM_CTRL, 2, 0), { .verb = RESET });
	FUZZ_SEED("flood", HELLO, MAPPED, MASTER, ENABLED, BAD_DOORBELLS, BAD_DOORBELLS,
		  BAD_DOORBELLS, BAD_DOORBELLS);
	FUZZ_SEED("cut", HELLO, MAPPED, MASTER, ENABLED, { .verb = CUT, .n = { 8192 } },
		  { .verb = WRITE, .a = 1, .n = { SKUA_DB_CMD, 3 }, .v[0] = SKUA_DB(0, 1) },
		  { .verb = AGAIN }, HELLO, { .verb = CUT, .n = { MEMORY } }, MAPPED);
	FUZZ_SEED("second", HELLO, { .verb = SECOND },
		  { .verb = SECOND, .a = 3, .n = { 16 }, .bytes = { [2] = VFIO_USER_VERSION, [4] = 16 } },
		  { .verb = SECOND }, { .verb = SECOND }, { .verb = AGAIN });
	FUZZ_SEED("pieces", HELLO, { .verb = MAP, .n[1] = 1, .c = 6 },
		  { .verb = IRQS, .n = { 0, 2 }, .c = 6 + 8, .n[2] = 3 },
		  { .verb = INFO, .a = 0x83 }, { .verb = READ, .a = 0x82, .n[1] = 16 },
		  { .verb = RAW, .a = 16, .bytes = { [2] = VFIO_USER_DEVICE_RESET, [4] = 16 } });
	FUZZ_SEED("unknown", HELLO, { .verb = ANY, .n = { 99 }, .a = 32 },
		  { .verb = ANY, .n = { 11 }, .c = 4, .n[2] = VFIO_USER_F_NO_REPLY });
}
