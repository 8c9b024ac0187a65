// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients of the vfio-user server that no sound client resembles: each loses its session,
 * with one line in the log that says why, and nobody else notices (assert_fault). Those whose descriptors are slow to
 * close do not stop the engine, either.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "harness/slow.h"
#include "pci/client.h"

/* What this thread does, which is the engine. */
static _Thread_local unsigned int munmaps, fstats;

/* While it is held, other threads unmap nothing. */
static pthread_mutex_t unmapping = PTHREAD_MUTEX_INITIALIZER;

int munmap(void *base, size_t size)
{
	int (*real)(void *, size_t) = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");

	munmaps++;
	if (gettid() != getpid()) {
		pthread_mutex_lock(&unmapping);
		pthread_mutex_unlock(&unmapping);
	}
	return real(base, size);
}

int fstat(int fd, struct stat *st)
{
	int (*real)(int, struct stat *) = (int (*)(int, struct stat *))dlsym(RTLD_NEXT, "fstat");

	fstats++;
	return real(fd, st);
}

/* SEC-7: a guest is not begun whose memory cannot be reached. */
static void memory_that_is_not_shared_is_refused_at_info(void **state)
{
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	int c = greeted(path0);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, -1), 0);
	assert_int_equal(call(c, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info)), ENODEV);
	assert_int_equal(logged("skua0: guest memory is not shared"), 1);
	/* QEMU then goes in good order. */
	assert_int_equal(dma_unmap_at(c, 0, MIB), 0);
	close(c);
	pump();
	assert_int_equal(logged("connection ended"), 0);
}

static void memory_that_is_not_shared_ends_at_bus_master(void **state)
{
	struct vfio_user_region_access a = { PCI_COMMAND, CONFIG, 2 };
	uint8_t body[sizeof(a) + 2] = { 0 };
	int c = greeted(path0);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, -1), 0);
	memcpy(body, &a, sizeof(a));
	body[sizeof(a)] = PCI_COMMAND_MASTER;
	send_command(c, VFIO_USER_REGION_WRITE, body, sizeof(body), NULL, 0);
	assert_fault(c, "guest memory is not shared");
}

/* SEC-7: the pages that are gone are found by an access. */
static void a_truncated_file_ends_only_its_own_session(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0);
	uint8_t *host;

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	host = double_mem_at(dev, 0)->host;
	host[8192] = 1;
	assert_return_code(ftruncate(fd, 4096), errno);
	/* The device touches it before anyone knows. */
	assert_int_equal(*(volatile uint8_t *)(host + 8192), 0);
	*(volatile uint8_t *)(host + 12288) = 1;
	close(fd);
	assert_fault(c, "guest memory is gone");
}

static void a_region_beyond_its_file_is_a_fault(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 4096, MAP_RW, fd), EINVAL);
	close(fd);
	assert_fault(c, "it is not inside its file");
}

static void memory_on_a_disk_is_out_of_reach(void **state)
{
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	int c = greeted(path0), fd = open("/proc/version", O_RDONLY);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, 4096, 0, VFIO_DMA_MAP_FLAG_READ, fd), 0);
	assert_null(double_mem_at(dev, 0));
	assert_int_equal(logged("no file in memory cannot be used"), 1);
	assert_int_equal(call(c, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info)), ENODEV);
	close(fd);
	close(c);
}

static void but_not_where_memory_is_persistent(void **state)
{
	int c = greeted(path0), fd = open("/proc/self/exe", O_RDONLY);

	(void)state;
	dev->persistent = true;
	assert_int_equal(dma_map_at(c, 0, 4096, 0, VFIO_DMA_MAP_FLAG_READ, fd), 0);
	assert_non_null(double_mem_at(dev, 0));
	assert_int_equal(logged("no file in memory cannot be used"), 0);
	dev->persistent = false;
	close(fd);
	close(c);
}

static void a_pipe_is_no_memory(void **state)
{
	int c = greeted(path0), p[2];

	(void)state;
	assert_return_code(pipe(p), errno);
	assert_int_equal(dma_map_at(c, 0, 4096, 0, MAP_RW, p[1]), 0);
	assert_null(double_mem_at(dev, 0));
	dev->persistent = true;
	assert_int_equal(dma_map_at(c, 4096, 4096, 0, MAP_RW, p[1]), EINVAL);
	dev->persistent = false;
	close(p[0]);
	close(p[1]);
	assert_fault(c, "its descriptor is not that of a regular file");
}

/* SEC-7: that may take as long as the client likes. */
static void nobody_asks_the_server_of_a_file(void **state)
{
	int c = greeted(path0), fd = open("/proc/self/exe", O_RDONLY), p[2];
	unsigned int before = fstats;

	(void)state;
	assert_return_code(pipe(p), errno);
	assert_int_equal(dma_map_at(c, 0, 4096, 0, VFIO_DMA_MAP_FLAG_READ, fd), 0);
	assert_int_equal(dma_map_at(c, 4096, 4096, 0, VFIO_DMA_MAP_FLAG_READ, p[0]), 0);
	assert_int_equal(fstats, before);
	close(p[0]);
	close(p[1]);
	close(fd);
	close(c);
}

static void a_file_too_large_to_map_is_a_fault(void **state)
{
	int c = greeted(path0), fd = memory(1ull << 43, 0);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), EINVAL);
	close(fd);
	assert_fault(c, "larger than skuad maps");
}

static unsigned int count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned int n = 0;
	int byte;

	while ((byte = getc(maps)) != EOF)
		n += byte == '\n';
	fclose(maps);
	return n;
}

/* A message is not served before the closer has room. @fd is given away. */
static bool has_to_wait(int c, unsigned int command, const void *body, size_t len, int fd)
{
	struct message m, reply;
	size_t n;

	post_fds(c, &m, make(&m, command, body, len), &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	pump();
	if (engine->resting)
		return true;
	assert_int_equal(receive_reply(c, command, &reply, &n), 0);
	return false;
}

static bool map_has_to_wait(int c, uint64_t iova, int fd)
{
	struct vfio_user_dma_map map = { sizeof(map), MAP_RW, 0, iova, 4096 };

	return has_to_wait(c, VFIO_USER_DMA_MAP, &map, sizeof(map), fd);
}

static bool unmap_has_to_wait(int c, uint64_t iova)
{
	struct vfio_user_dma_unmap unmap = { sizeof(unmap), 0, iova, 4096 };

	return has_to_wait(c, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), -1);
}

/* Its closer was busy until now: the client @c is served, and so is the next one. */
static void assert_goes_on(int c)
{
	uint8_t byte;

	assert_soon((engine->resting = NULL, pump(), recv(c, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1));
	close(c);
	assert_soon((engine->resting = NULL, pump(), logged("the client has disconnected") == 1));
	assert_int_equal(logged("connection ended"), 0);
	c = client_connect(path0);
	assert_soon((engine->resting = NULL, pump(), logged("skua0: a client has connected") == 2));
	assert_int_equal(try_version(c, 0), 0);
	close(c);
}

/* SEC-8: the kernel has so many mappings for a process, and this one serves other guests. */
static void files_that_come_and_go_faster_than_they_are_unmapped_wait(void **state)
{
	unsigned int before = count_mappings(), n = 0;
	int c = greeted(path0);

	(void)state;
	pthread_mutex_lock(&unmapping);
	while (n < 2000 && !map_has_to_wait(c, 0, memory(4096, 0)) && !unmap_has_to_wait(c, 0))
		n++;
	assert_in_range(n, 128, 256);
	assert_in_range(count_mappings() - before, 128, 256);
	assert_int_equal(region_read(other_client, BAR0, 0x10, 4), 0x10);
	pthread_mutex_unlock(&unmapping);
	assert_goes_on(c);
}

/* SEC-8: a process may have so many. */
static void descriptors_that_come_faster_than_they_are_closed_wait(void **state)
{
	int c = greeted(path0);
	unsigned int n = 0;
	struct slow s;

	(void)state;
	slow_start(&s);
	assert_false(map_has_to_wait(c, 1ull << 32, s.fd));
	while (n < 2000 && !map_has_to_wait(c, n * 4096, open("/dev/null", O_RDONLY)))
		n++;
	assert_in_range(n, 64, 256);
	assert_int_equal(region_read(other_client, BAR0, 0x10, 4), 0x10);
	slow_end(&s);
	assert_goes_on(c);
}

/* Ways in which a descriptor comes that nobody keeps */

static void comes_as_memory(int fd)
{
	int c = greeted(path0);

	assert_false(map_has_to_wait(c, 0, fd));
	close(c);
}

static void comes_as_one_too_many(int fd)
{
	int c = greeted(path0), fds[17];

	for (unsigned int i = 0; i < 16; i++)
		fds[i] = eventfd(0, EFD_NONBLOCK);
	fds[16] = fd;
	post_fds(c, "\1", 1, fds, 17);
	for (unsigned int i = 0; i < 17; i++)
		close(fds[i]);
	pump();
	assert_int_equal(logged("more than 16 file descriptors"), 1);
	close(c);
}

static void comes_behind_the_end(int fd)
{
	static const char garbage[CHANNEL_RX_SIZE];
	int c = greeted(path0);

	post_fds(c, garbage, sizeof(garbage), NULL, 0);
	post_fds(c, "\1", 1, &fd, 1);
	close(fd);
	pump();
	assert_true(ended(c));
	close(c);
}

static void comes_from_a_second_client(int fd)
{
	int c = greeted(path0), second = client_knock(path0);
	struct message m;

	post_fds(second, &m, make(&m, VFIO_USER_VERSION, "\0\0\0", 4), &fd, 1);
	close(fd);
	pump();
	assert_int_equal(recv(second, &m.hdr, sizeof(m.hdr), MSG_DONTWAIT), sizeof(m.hdr));
	assert_int_equal(m.hdr.error, EBUSY);
	assert_true(ended(second));
	close(second);
	close(c);
}

static void comes_from_a_second_client_that_a_third_replaces(int fd)
{
	int c = greeted(path0), second = client_connect(path0), third = client_knock(path0);

	post_fds(second, "\1", 1, &fd, 1);
	close(fd);
	pump();
	assert_true(ended(second));
	close(second);
	close(third);
	close(c);
}

/* SEC-8: who has sent it waits alone for it. */
static void a_descriptor_that_is_slow_to_close_stops_nobody(void **state)
{
	static void (*const comes[])(int fd) = {
		comes_as_memory, comes_as_one_too_many, comes_behind_the_end, comes_from_a_second_client,
		comes_from_a_second_client_that_a_third_replaces,
	};

	for (unsigned int i = 0; i < sizeof(comes) / sizeof(comes[0]); i++) {
		struct slow s;
		int c;

		slow_start(&s);
		comes[i](s.fd);
		pump();
		assert_int_equal(region_read(other_client, BAR0, 0x10, 4), 0x10);
		c = greeted(path0);
		close(c);
		pump();
		slow_end(&s);
		teardown(state);
		setup(state);
	}
}

static void a_device_ends_before_a_descriptor_that_is_slow_to_close(void **state)
{
	struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
	struct vfu *v = vfu_create(engine, NULL, &config);
	struct slow s;
	int pair[2];

	(void)state;
	slow_start(&s);
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	vfu_serve(v, pair[0]);
	post_fds(pair[1], "\1", 1, &s.fd, 1);
	close(s.fd);
	vfu_destroy(v);
	assert_true(ended(pair[1]));
	close(pair[1]);
	slow_end(&s);
}

/* SEC-8: its connection waits in the listener, and nobody has accepted it. */
static void a_device_ends_before_one_that_a_waiting_client_has_sent(void **state)
{
	struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
	char path[sizeof(path0) + 2];
	struct vfu *v;
	struct slow s;
	int c;

	(void)state;
	snprintf(path, sizeof(path), "%s-2", path0);
	v = vfu_create(engine, path, &config);
	assert_non_null(v);
	c = client_knock(path);
	slow_start(&s);
	post_fds(c, "\1", 1, &s.fd, 1);
	close(s.fd);
	vfu_destroy(v);
	slow_end(&s);
	close(c);
}

/* All clients are let go before anything is closed that may be slow to close. */
static void a_device_lets_go_of_its_client_before_it_ends(void **state)
{
	struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
	struct vfu *v = vfu_create(engine, NULL, &config);
	int pair[2];

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	vfu_serve(v, pair[0]);
	vfu_disconnect(v);
	assert_true(ended(pair[1]));
	vfu_disconnect(v);
	vfu_destroy(v);
	close(pair[1]);
}

/* SEC-8: the last munmap() of a file frees all of its memory. It does not wait for what is slow to close. */
static void the_memory_of_a_client_that_left_is_unmapped_by_another_thread(void **state)
{
	int c = greeted(path0), fd = memory(64 * MIB, 0);
	unsigned char pages[64 * MIB / 4096];
	unsigned int before;
	uint8_t *host;
	struct slow s;

	(void)state;
	slow_start(&s);
	assert_false(map_has_to_wait(c, 1ull << 32, s.fd));
	assert_int_equal(dma_map_at(c, 0, 64 * MIB, 0, MAP_RW, fd), 0);
	host = double_mem_at(dev, 0)->host;
	close(fd);
	close(c);
	before = munmaps;
	pump();
	assert_int_equal(munmaps, before);
	assert_soon(mincore(host, 64 * MIB, pages) && errno == ENOMEM);
	slow_end(&s);
}

static void regions_must_make_sense(void **state)
{
	static const struct {
		uint64_t iova, size, offset;
		uint32_t flags;
		const char *why;
	} bad[] = {
		{ 0, 0, 0, MAP_RW, "0x0+0x0: it is empty" },
		{ -4096ull, 8192, 0, MAP_RW, "0x2000: it is empty or wraps" },
		{ 0, 4096, -4096ull, MAP_RW, "0x1000: it is empty or wraps" },
		{ 0, -4096ull, 8192, MAP_RW, "0xfffffffffffff000: it is empty or wraps" },
		{ 1, 4096, 0, MAP_RW, "0x1+0x1000: it is not made of whole pages" },
		{ 0, 4097, 0, MAP_RW, "0x1001: it is not made of whole pages" },
		{ 0x2000, 4096, 512, MAP_RW, "0x2000+0x1000: it is not made of whole pages" },
		{ 0, 4096, 0, 0, "unknown flags" },
		{ 0x1000, 4096, 0, 8, "0x1000+0x1000: unknown flags" },
	};
	int fd = memory(MIB, 0);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int c = greeted(path0);

		assert_int_equal(dma_map_at(c, bad[i].iova, bad[i].size, bad[i].offset,
					    bad[i].flags, fd), EINVAL);
		assert_true(ended(c));
		assert_int_equal(logged(bad[i].why), 1);
		close(c);
	}
	assert_int_equal(logged("connection ended"), i);
	close(fd);
}

/* Clients come and go */

static void a_second_client_is_refused_with_one_line(void **state)
{
	int c = greeted(path0), second = client_connect(path0), third;

	(void)state;
	assert_int_equal(logged("a second client was refused"), 1);
	assert_int_equal(try_version(second, 0), EBUSY);
	assert_true(ended(second));
	/* Those who say nothing do not pile up. */
	close(second);
	second = client_connect(path0);
	third = client_connect(path0);
	assert_true(ended(second));
	assert_false(ended(third));
	assert_int_equal(region_read(c, BAR0, 0x20, 4), 0x20);
	close(second);
	close(third);
	close(c);
}

static void a_client_that_dies_in_the_middle_is_a_fault(void **state)
{
	int c = greeted(path0), next;

	(void)state;
	send_fds(c, "\1\0\12\0\44", 5, NULL, 0);
	close(c);
	pump();
	assert_int_equal(logged("disconnected in the middle of a message"), 1);
	next = greeted(path0);
	close(next);
}

static void bad_paths_are_one_clear_line(void **state)
{
	struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
	char path[200];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_null(vfu_create(engine, path, &config));
	assert_int_equal(errno, ENAMETOOLONG);
	assert_null(vfu_create(engine, "/nonexistent/socket", &config));
	assert_int_equal(logged("skua2: socket"), 2);
	/* A file that is no socket is not touched. */
	snprintf(path, sizeof(path), "%s/file", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_null(vfu_create(engine, path, &config));
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

static void a_client_that_reads_no_replies_is_a_fault(void **state)
{
	struct vfio_user_region_access a = { 0, CONFIG, 4096 };
	int c = greeted(path0), i;
	struct message m;
	size_t size = make(&m, VFIO_USER_REGION_READ, &a, sizeof(a));

	(void)state;
	for (i = 0; i < 10000; i++) {
		if (send(c, &m, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPIPE)
			break;
		engine_step(engine);
	}
	assert_true(i < 10000);
	assert_fault(c, "does not read its replies");
}

static void garbage_before_version_is_a_fault(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: skua\r\n\r\n";
	int c = client_connect(path0);

	(void)state;
	send_fds(c, http, sizeof(http) - 1, NULL, 0);
	assert_fault(c, "a message is longer");
}

static void commands_before_version_are_a_fault(void **state)
{
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	int c = client_connect(path0);

	(void)state;
	assert_int_equal(call(c, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info)), EINVAL);
	assert_fault(c, "before VERSION");
}

static void a_second_version_is_a_fault(void **state)
{
	int c = greeted(path0);

	(void)state;
	assert_int_equal(try_version(c, 0), EINVAL);
	assert_fault(c, "VERSION came twice");
}

static void an_unknown_version_is_a_fault(void **state)
{
	int c = client_connect(path0);

	(void)state;
	assert_int_equal(try_version(c, 1), EINVAL);
	assert_fault(c, "version 1.0 is not known");
}

static void capabilities_need_an_end(void **state)
{
	int c = client_connect(path0);

	(void)state;
	assert_int_equal(call_fds(c, VFIO_USER_VERSION, "\0\0\0\0{}", 6, NULL, 0), EINVAL);
	assert_fault(c, "capabilities without an end");
}

/* Headers that lie: @size and @flags as sent, of a command that would be fine. */
static void bad_header(uint32_t size, uint32_t flags, const char *why)
{
	int c = greeted(path0);
	struct message m;

	make(&m, VFIO_USER_DEVICE_RESET, NULL, 0);
	m.hdr.size = size;
	m.hdr.flags = flags;
	send_fds(c, &m.hdr, sizeof(m.hdr), NULL, 0);
	assert_fault(c, why);
}

static void a_size_of_zero_is_a_fault(void **state)
{
	(void)state;
	bad_header(0, 0, "shorter than its header");
}

static void a_size_below_the_header_is_a_fault(void **state)
{
	(void)state;
	bad_header(15, 0, "shorter than its header");
}

static void a_huge_size_is_a_fault(void **state)
{
	(void)state;
	bad_header(UINT32_MAX, 0, "longer than was agreed");
}

static void a_size_just_above_the_limit_is_a_fault(void **state)
{
	(void)state;
	bad_header(VFIO_USER_MAX_MSG + 1, 0, "longer than was agreed");
}

static void replies_to_nothing_are_a_fault(void **state)
{
	(void)state;
	bad_header(16, VFIO_USER_F_REPLY, "command 13: flags 0x1");
}

static void unknown_flags_are_a_fault(void **state)
{
	(void)state;
	bad_header(16, 0x40, "command 13: flags 0x40");
}

/* A message with a body of @len zeros but for its first word, argsz. */
static void bad_body(unsigned int command, uint32_t argsz, size_t len, const char *why)
{
	uint32_t body[VFIO_USER_MAX_MSG / 4] = { argsz };
	int c = greeted(path0);

	assert_int_equal(call_fds(c, command, body, len, NULL, 0), EINVAL);
	assert_true(ended(c));
	close(c);
	assert_int_equal(logged(why), 1);
}

static void bodies_of_the_wrong_size_are_faults(void **state)
{
	(void)state;
	bad_body(VFIO_USER_DMA_MAP, 32, 31, "DMA_MAP: a message of 47 bytes");
	bad_body(VFIO_USER_DMA_MAP, 32, 0, "DMA_MAP: a message of 16 bytes");
	bad_body(VFIO_USER_DMA_MAP, 32, 33, "DMA_MAP: a message of 49 bytes");
	bad_body(VFIO_USER_DMA_UNMAP, 24, 20, "DMA_UNMAP: a message of 36 bytes");
	bad_body(VFIO_USER_DEVICE_GET_INFO, 16, 15, "GET_INFO: a message of 31 bytes");
	bad_body(VFIO_USER_DEVICE_GET_REGION_INFO, 32, 16, "REGION_INFO: a message of 32 bytes");
	bad_body(VFIO_USER_DEVICE_GET_IRQ_INFO, 16, 8, "IRQ_INFO: a message of 24 bytes");
	bad_body(VFIO_USER_DEVICE_SET_IRQS, 20, 19, "SET_IRQS: a message of 35 bytes");
	bad_body(VFIO_USER_REGION_READ, 0, 12, "REGION_READ: a message of 28 bytes");
	bad_body(VFIO_USER_REGION_WRITE, 0, 16, "REGION_WRITE: a message of 32 bytes");
	bad_body(VFIO_USER_DEVICE_RESET, 0, 4, "RESET: a message of 20 bytes");
	assert_int_equal(logged("connection ended"), 11);
}

static void argsz_below_the_structure_is_a_fault(void **state)
{
	(void)state;
	bad_body(VFIO_USER_DMA_MAP, 31, 32, "DMA_MAP: argsz 31");
	bad_body(VFIO_USER_DMA_UNMAP, 0, 24, "DMA_UNMAP: argsz 0");
	bad_body(VFIO_USER_DEVICE_GET_INFO, 15, 16, "GET_INFO: argsz 15");
	bad_body(VFIO_USER_DEVICE_GET_REGION_INFO, 8, 32, "REGION_INFO: argsz 8");
	bad_body(VFIO_USER_DEVICE_GET_IRQ_INFO, 12, 16, "IRQ_INFO: argsz 12");
	bad_body(VFIO_USER_DEVICE_SET_IRQS, 19, 20, "SET_IRQS: argsz 19");
}

static void accesses_outside_regions_are_faults(void **state)
{
	static const struct {
		uint64_t offset;
		uint32_t region, count;
	} bad[] = {
		{ 0x8000, BAR0, 4 },
		{ 0x7ffe, BAR0, 4 },
		{ 16 * MIB, BAR2, 4 },
		{ UINT64_MAX, BAR2, 1 },
		{ UINT64_MAX - 3, BAR0, 8 },
		{ 4096, CONFIG, 1 },
		{ 4, CONFIG, 4096 },
		{ 0, CONFIG, 0 },
		{ 0, CONFIG, 4097 },
		{ 0, CONFIG, UINT32_MAX },
		{ 0, BAR0, 3 },
		{ 0, BAR0, 16 },
		{ 0, 1, 4 },
		{ 0, 6, 4 },
		{ 0, 9, 4 },
		{ 0, UINT32_MAX, 4 },
	};
	unsigned int reads = dev->bar_reads, writes = dev->bar_writes;
	char why[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vfio_user_region_access a = {
			bad[i].offset, bad[i].region, bad[i].count };
		uint8_t body[sizeof(a) + 4] = { 0 };
		int c = greeted(path0);

		snprintf(why, sizeof(why), "READ: region %u, 0x%llx+%u", a.region,
			 (unsigned long long)a.offset, a.count);
		assert_int_equal(call_fds(c, VFIO_USER_REGION_READ, &a, sizeof(a), NULL, 0),
				 EINVAL);
		assert_true(ended(c));
		assert_int_equal(logged(why), 1);
		close(c);

		c = greeted(path0);
		memcpy(body, &a, sizeof(a));
		assert_int_equal(call_fds(c, VFIO_USER_REGION_WRITE, body, sizeof(body), NULL, 0),
				 EINVAL);
		assert_true(ended(c));
		close(c);
	}
	assert_int_equal(dev->bar_reads, reads);
	assert_int_equal(dev->bar_writes, writes);
}

static void a_count_other_than_the_data_is_a_fault(void **state)
{
	struct vfio_user_region_access a = { 0, BAR0, 8 };
	uint8_t body[sizeof(a) + 4] = { 0 };
	int c = greeted(path0);

	(void)state;
	memcpy(body, &a, sizeof(a));
	assert_int_equal(call_fds(c, VFIO_USER_REGION_WRITE, body, sizeof(body), NULL, 0), EINVAL);
	assert_fault(c, "REGION_WRITE: 4 bytes of data for 8");
}

static void vectors_out_of_range_are_faults(void **state)
{
	static const struct {
		uint32_t index, start, count;
		const char *why;
	} bad[] = {
		{ VFIO_PCI_MSIX_IRQ_INDEX, 64, 1, "vectors 64+1" },
		{ VFIO_PCI_MSIX_IRQ_INDEX, 0, 65, "vectors 0+65" },
		{ VFIO_PCI_MSIX_IRQ_INDEX, 1, UINT32_MAX, "vectors 1+4294967295" },
		{ VFIO_PCI_MSIX_IRQ_INDEX, UINT32_MAX, 2, "vectors 4294967295+2" },
		{ NUM_IRQS, 0, 1, "SET_IRQS: index 3" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vfio_user_irq_set set = {
			sizeof(set), SET_EVENTFD, bad[i].index, bad[i].start, bad[i].count };
		int c = greeted(path0);

		assert_int_equal(call_fds(c, VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set),
					  NULL, 0), EINVAL);
		assert_true(ended(c));
		assert_int_equal(logged(bad[i].why), 1);
		close(c);
	}
}

static void a_pipe_is_no_interrupt(void **state)
{
	int c = greeted(path0), p[2];

	(void)state;
	assert_return_code(pipe(p), errno);
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 1, &p[1], 1), EINVAL);
	close(p[0]);
	close(p[1]);
	assert_fault(c, "a descriptor is not an eventfd");
}

static void a_timer_among_eventfds_is_no_interrupt(void **state)
{
	int c = greeted(path0), efd = eventfd(0, EFD_NONBLOCK);
	int fds[2] = { efd, timerfd_create(CLOCK_MONOTONIC, 0) };

	(void)state;
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 2, fds, 2), EINVAL);
	close(fds[1]);
	close(efd);
	assert_fault(c, "a descriptor is not an eventfd");
}

static void descriptors_must_match_the_vectors(void **state)
{
	int c = greeted(path0), efd = eventfd(0, EFD_NONBLOCK);
	int two[2] = { efd, efd };

	(void)state;
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 3, two, 2), EINVAL);
	close(efd);
	assert_fault(c, "SET_IRQS: 2 descriptors for 3 vectors");
}

static void descriptors_that_nobody_expects_are_a_fault(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0), i;
	int fds[17];
	struct vfio_user_dma_map map = { sizeof(map), MAP_RW, 0, 0, MIB };

	(void)state;
	for (i = 0; i < 17; i++)
		fds[i] = fd;
	assert_int_equal(call_fds(c, VFIO_USER_DMA_MAP, &map, sizeof(map), fds, 2), EINVAL);
	assert_true(ended(c));
	close(c);
	assert_int_equal(logged("DMA_MAP: 2 descriptors"), 1);
	c = greeted(path0);
	assert_int_equal(call_fds(c, VFIO_USER_DEVICE_RESET, NULL, 0, fds, 1), EINVAL);
	assert_true(ended(c));
	close(c);
	assert_int_equal(logged("RESET: 1 descriptors"), 1);
	c = greeted(path0);
	assert_int_equal(set_irqs(c, SET_NONE, 0, 0, fds, 1), EINVAL);
	assert_true(ended(c));
	close(c);
	assert_int_equal(logged("SET_IRQS: 1 descriptors are not"), 1);
	close(fd);
}

static void more_than_16_descriptors_are_a_fault(void **state)
{
	int c = greeted(path0), fds[17], i;
	struct vfio_user_irq_set set = {
		sizeof(set), SET_EVENTFD, VFIO_PCI_MSIX_IRQ_INDEX, 0, 17 };

	(void)state;
	for (i = 0; i < 17; i++)
		fds[i] = eventfd(0, EFD_NONBLOCK);
	send_command(c, VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), fds, 17);
	for (i = 0; i < 17; i++)
		close(fds[i]);
	assert_fault(c, "more than 16 file descriptors");
}

static void more_than_16_descriptors_in_pieces_are_a_fault(void **state)
{
	int c = greeted(path0), efd = eventfd(0, EFD_NONBLOCK), fds[9], i;

	(void)state;
	for (i = 0; i < 9; i++)
		fds[i] = efd;
	send_fds(c, "\1", 1, fds, 9);
	send_fds(c, "\0", 1, fds, 9);
	close(efd);
	assert_fault(c, "more than 16 file descriptors");
}

/* The process may have @n descriptors more, and gets 8. */
static void lack_descriptors(unsigned int n)
{
	int c = greeted(path0), fds[8], i, next;
	struct vfio_user_irq_set set = { sizeof(set), SET_EVENTFD, VFIO_PCI_MSIX_IRQ_INDEX, 0, 8 };
	struct rlimit limit, few;

	for (i = 0; i < 8; i++)
		fds[i] = eventfd(0, EFD_NONBLOCK);
	next = dup(fds[0]);
	close(next);
	assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
	few = (struct rlimit){ (rlim_t)next + n, limit.rlim_max };
	assert_return_code(setrlimit(RLIMIT_NOFILE, &few), errno);
	send_command(c, VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), fds, 8);
	assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
	for (i = 0; i < 8; i++)
		close(fds[i]);
	assert_fault(c, "skuad may have too few descriptors (see ulimit -n)");
}

static void descriptors_that_skuad_may_not_have(void **state)
{
	(void)state;
	lack_descriptors(3);
}

static void no_descriptor_that_skuad_may_have(void **state)
{
	(void)state;
	lack_descriptors(0);
}

static void random_messages_end_sessions_and_nothing_else(void **state)
{
	unsigned int i, seed = 1, j;

	(void)state;
	for (i = 0; i < 2000; i++) {
		int c = greeted(path0);
		struct message m;

		for (j = 0; j < sizeof(m.body) / 8; j++)
			m.body[j] = rand_r(&seed) % 4 ? 0 : rand_r(&seed);
		make(&m, rand_r(&seed) % 16, NULL, 0);
		m.hdr.size += rand_r(&seed) % 64;
		m.hdr.flags = rand_r(&seed) % 8 ? 0 : VFIO_USER_F_NO_REPLY;
		send_fds(c, &m, m.hdr.size, NULL, 0);
		close(c);
		pump();
		/* The closer may be slower, and clients wait for one that is full. */
		if (i % 64 == 63) {
			teardown(state);
			setup(state);
		}
	}
	assert_int_equal(region_read(other_client, BAR0, 0x10, 4), 0x10);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(memory_that_is_not_shared_is_refused_at_info),
		TEST(memory_that_is_not_shared_ends_at_bus_master),
		TEST(a_truncated_file_ends_only_its_own_session),
		TEST(a_region_beyond_its_file_is_a_fault),
		TEST(memory_on_a_disk_is_out_of_reach),
		TEST(but_not_where_memory_is_persistent),
		TEST(a_pipe_is_no_memory),
		TEST(nobody_asks_the_server_of_a_file),
		TEST(a_file_too_large_to_map_is_a_fault),
		TEST(files_that_come_and_go_faster_than_they_are_unmapped_wait),
		TEST(descriptors_that_come_faster_than_they_are_closed_wait),
		TEST(a_descriptor_that_is_slow_to_close_stops_nobody),
		TEST(a_device_ends_before_a_descriptor_that_is_slow_to_close),
		TEST(a_device_ends_before_one_that_a_waiting_client_has_sent),
		TEST(a_device_lets_go_of_its_client_before_it_ends),
		TEST(the_memory_of_a_client_that_left_is_unmapped_by_another_thread),
		TEST(regions_must_make_sense),
		TEST(a_second_client_is_refused_with_one_line),
		TEST(a_client_that_dies_in_the_middle_is_a_fault),
		TEST(bad_paths_are_one_clear_line),
		TEST(a_client_that_reads_no_replies_is_a_fault),
		TEST(garbage_before_version_is_a_fault),
		TEST(commands_before_version_are_a_fault),
		TEST(a_second_version_is_a_fault),
		TEST(an_unknown_version_is_a_fault),
		TEST(capabilities_need_an_end),
		TEST(a_size_of_zero_is_a_fault),
		TEST(a_size_below_the_header_is_a_fault),
		TEST(a_huge_size_is_a_fault),
		TEST(a_size_just_above_the_limit_is_a_fault),
		TEST(replies_to_nothing_are_a_fault),
		TEST(unknown_flags_are_a_fault),
		TEST(bodies_of_the_wrong_size_are_faults),
		TEST(argsz_below_the_structure_is_a_fault),
		TEST(accesses_outside_regions_are_faults),
		TEST(a_count_other_than_the_data_is_a_fault),
		TEST(vectors_out_of_range_are_faults),
		TEST(a_pipe_is_no_interrupt),
		TEST(a_timer_among_eventfds_is_no_interrupt),
		TEST(descriptors_must_match_the_vectors),
		TEST(descriptors_that_nobody_expects_are_a_fault),
		TEST(more_than_16_descriptors_are_a_fault),
		TEST(more_than_16_descriptors_in_pieces_are_a_fault),
		TEST(descriptors_that_skuad_may_not_have),
		TEST(no_descriptor_that_skuad_may_have),
		TEST(random_messages_end_sessions_and_nothing_else),
	};
	int failed;

	if (client_start())
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
