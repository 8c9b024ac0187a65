/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The client's side of vfio-user, and the fixture of its tests.
 *
 * Each test has two devices, skua0 under test and skua1 with a client that must not notice
 * anything. The test is the client and turns the engine in between, all in one thread.
 */
#ifndef SKUAD_PCI_CLIENT_H
#define SKUAD_PCI_CLIENT_H

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pci/channel.h"
#include "pci/double.h"
#include "pci/function.h"
#include "pci/vfio_user.h"
#include "pci/vfio_user_proto.h"
#include "skua/regs.h"

#define CONFIG		VFIO_PCI_CONFIG_REGION_INDEX
#define BAR0		VFIO_PCI_BAR0_REGION_INDEX
#define BAR2		VFIO_PCI_BAR2_REGION_INDEX
#define NUM_IRQS	3	/* INTx, MSI, MSI-X */
#define MAP_RW		(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)
#define SET_EVENTFD	(VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)
#define SET_NONE	(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)
#define MIB		(1u << 20)

static char dir[] = "/tmp/skuad-test-XXXXXX";
static char path0[64], path1[64];
static struct engine *engine;
static struct vfu *vfu, *other;
static struct skua_dev *dev;
static int other_client;
static int log_fd, saved_stderr;

/* Time flies, so that the log's limit of lines in a second never hides one here. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static _Atomic time_t now;

	(void)clock;
	*ts = (struct timespec){ .tv_sec = ++now };
	return 0;
}

/* Of what another thread does. */
#define assert_soon(condition) do {					\
	for (unsigned int ms_ = 0; ms_ < 10000 && !(condition); ms_++)	\
		poll(NULL, 0, 1);					\
	assert_true(condition);						\
} while (0)

/* The client's side */

static inline void pump(void)
{
	unsigned int i;

	for (i = 0; i < 10000 && engine_step(engine); i++)
		;
}

/* Without letting the server work. */
static inline int client_knock(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_return_code(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), errno);
	return fd;
}

static inline int client_connect(const char *path)
{
	int fd = client_knock(path);

	pump();
	return fd;
}

/* Sends @len bytes with @nfds descriptors. */
static inline void post_fds(int c, const void *data, size_t len, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(64 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *cm;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	assert_int_equal(sendmsg(c, &mh, MSG_NOSIGNAL | MSG_DONTWAIT), len);
}

/* As post_fds(), and lets the server work. */
static inline void send_fds(int c, const void *data, size_t len, const int *fds, unsigned int nfds)
{
	post_fds(c, data, len, fds, nfds);
	pump();
}

struct message {
	struct vfio_user_hdr hdr;
	uint8_t body[VFIO_USER_MAX_MSG];
};

static inline size_t make(struct message *m, unsigned int command, const void *body, size_t len)
{
	m->hdr = (struct vfio_user_hdr){
		.id = 0x1234, .command = command, .size = sizeof(m->hdr) + len };
	if (len)
		memcpy(m->body, body, len);
	return m->hdr.size;
}

static inline void send_command(int c, unsigned int command, const void *body, size_t len,
			 const int *fds, unsigned int nfds)
{
	struct message m;
	size_t size = make(&m, command, body, len);

	send_fds(c, &m, size, fds, nfds);
}

/* The reply's error; its body, of *len bytes, in @body. */
static inline int receive_reply(int c, unsigned int command, void *body, size_t *len)
{
	struct message m;
	ssize_t n = recv(c, &m.hdr, sizeof(m.hdr), MSG_DONTWAIT);

	assert_int_equal(n, sizeof(m.hdr));
	assert_int_equal(m.hdr.id, 0x1234);
	assert_int_equal(m.hdr.command, command);
	assert_int_equal(m.hdr.flags & VFIO_USER_F_TYPE, VFIO_USER_F_REPLY);
	*len = m.hdr.size - sizeof(m.hdr);
	assert_true(*len <= sizeof(m.body));
	if (*len) {
		assert_int_equal(recv(c, m.body, *len, MSG_DONTWAIT), *len);
		memcpy(body, m.body, *len);
	}
	if (m.hdr.flags & VFIO_USER_F_ERROR) {
		assert_int_equal(*len, 0);
		return m.hdr.error;
	}
	return 0;
}

static inline int call_fds(int c, unsigned int command, const void *body, size_t len,
			   const int *fds, unsigned int nfds)
{
	uint8_t reply[VFIO_USER_MAX_MSG];
	size_t n;

	send_command(c, command, body, len, fds, nfds);
	return receive_reply(c, command, reply, &n);
}

static inline int call(int c, unsigned int command, void *body, size_t len)
{
	uint8_t reply[VFIO_USER_MAX_MSG];
	size_t n = 0;
	int ret;

	send_command(c, command, body, len, NULL, 0);
	ret = receive_reply(c, command, reply, &n);
	memcpy(body, reply, n < len ? n : len);
	return ret;
}

static inline int try_version(int c, unsigned int major)
{
	static const char caps[] = "{\"capabilities\":{\"max_msg_fds\":16}}";
	uint8_t body[4 + sizeof(caps)] = { major };

	memcpy(body + 4, caps, sizeof(caps));
	return call_fds(c, VFIO_USER_VERSION, body, sizeof(body), NULL, 0);
}

static inline int greeted(const char *path)
{
	int c = client_connect(path);

	assert_int_equal(try_version(c, 0), 0);
	return c;
}

static inline void region_write(int c, unsigned int region, uint64_t offset, uint64_t value,
			 unsigned int len)
{
	struct {
		struct vfio_user_region_access a;
		uint64_t value;
	} body = { { offset, region, len }, value };

	assert_int_equal(call(c, VFIO_USER_REGION_WRITE, &body, sizeof(body.a) + len), 0);
	assert_int_equal(body.a.count, len);
}

static inline uint64_t region_read(int c, unsigned int region, uint64_t offset, unsigned int len)
{
	struct vfio_user_region_access a = { offset, region, len };
	struct {
		struct vfio_user_region_access a;
		uint64_t value;
	} reply = { .value = 0 };
	size_t n;

	send_command(c, VFIO_USER_REGION_READ, &a, sizeof(a), NULL, 0);
	assert_int_equal(receive_reply(c, VFIO_USER_REGION_READ, &reply, &n), 0);
	assert_int_equal(n, sizeof(a) + len);
	assert_memory_equal(&reply.a, &a, sizeof(a));
	return reply.value;
}

/* A client that has switched bus mastering on. */
static inline int mastering(const char *path)
{
	int c = greeted(path);

	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	return c;
}

static inline int dma_map_at(int c, uint64_t iova, uint64_t size, uint64_t offset,
			     uint32_t flags, int fd)
{
	struct vfio_user_dma_map map = {
		.argsz = sizeof(map), .flags = flags, .offset = offset,
		.iova = iova, .size = size };

	return call_fds(c, VFIO_USER_DMA_MAP, &map, sizeof(map), &fd, fd >= 0);
}

static inline int dma_unmap_at(int c, uint64_t iova, uint64_t size)
{
	struct vfio_user_dma_unmap unmap = { sizeof(unmap), 0, iova, size };

	return call(c, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap));
}

static inline int set_irqs(int c, uint32_t flags, uint32_t start, uint32_t count, const int *fds,
		    unsigned int nfds)
{
	struct vfio_user_irq_set set = {
		sizeof(set), flags, VFIO_PCI_MSIX_IRQ_INDEX, start, count };

	return call_fds(c, VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), fds, nfds);
}

static inline int memory(size_t size, unsigned int seals)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_return_code(ftruncate(fd, size), errno);
	if (seals)
		assert_return_code(fcntl(fd, F_ADD_SEALS, seals), errno);
	return fd;
}

static inline bool ended(int c)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(c, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	return !n || errno == ECONNRESET;
}

/* Lines of the log with @text in them. */
static inline unsigned int logged(const char *text)
{
	static char buf[65536];
	ssize_t n = pread(log_fd, buf, sizeof(buf) - 1, 0);
	unsigned int count = 0;
	char *line, *save;

	buf[n < 0 ? 0 : n] = '\0';
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		count += !!strstr(line, text);
	return count;
}

/*
 * The session of @c ended with one line that says @text, and left nothing behind; the other
 * device's client is served on, and so is the next one here.
 */
static inline void assert_fault(int c, const char *text)
{
	unsigned int n;

	pump();
	assert_true(ended(c));
	close(c);
	n = logged(text);
	if (n != 1)
		print_message("not logged: %s\n", text);	/* standard error is the log */
	assert_int_equal(n, 1);
	assert_int_equal(logged("connection ended"), 1);
	assert_false(dev->bus_master);
	assert_null(double_mem_at(dev, 0));
	assert_int_equal(region_read(other_client, BAR0, 0x10, 4), 0x10);
	c = greeted(path0);
	assert_int_equal(region_read(c, BAR0, 0x20, 4), 0x20);
	close(c);
	pump();
}

static inline int setup(void **state)
{
	struct skua_dev_config c0 = { .name = "skua0", .link = "wire:t" };
	struct skua_dev_config c1 = { .name = "skua1", .link = "wire:t" };

	(void)state;
	log_fd = memfd_create("log", MFD_CLOEXEC);
	fcntl(log_fd, F_SETFL, O_APPEND);
	saved_stderr = dup(STDERR_FILENO);
	dup2(log_fd, STDERR_FILENO);
	engine = engine_create(false);
	vfu = vfu_create(engine, path0, &c0);
	other = vfu_create(engine, path1, &c1);
	assert_non_null(vfu);
	assert_non_null(other);
	dev = vfu_dev(vfu);
	other_client = greeted(path1);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	close(other_client);
	vfu_destroy(vfu);
	vfu_destroy(other);
	engine_destroy(engine);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(log_fd);
	return 0;
}

static inline int client_start(void)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path0, sizeof(path0), "%s/0", dir);
	snprintf(path1, sizeof(path1), "%s/1", dir);
	return 0;
}

#endif /* SKUAD_PCI_CLIENT_H */
