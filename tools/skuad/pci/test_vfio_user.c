// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The vfio-user server on real sockets, with a double of the device (double.h). What a sound
 * client sees; what becomes of others is in test_bad_client.c.
 */
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "pci/client.h"

/* Handshake and description */

static void version_is_agreed_with_our_limits(void **state)
{
	struct vfio_user_version v = { 0, 1 };
	char reply[VFIO_USER_MAX_MSG];
	int c = client_connect(path0);
	size_t n;

	(void)state;
	send_command(c, VFIO_USER_VERSION, &v, sizeof(v), NULL, 0);
	assert_int_equal(receive_reply(c, VFIO_USER_VERSION, reply, &n), 0);
	memcpy(&v, reply, sizeof(v));
	assert_int_equal(v.major, 0);
	assert_int_equal(v.minor, 0);
	assert_int_equal(reply[n - 1], 0);
	assert_string_equal(reply + sizeof(v),
			    "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":4096,"
			    "\"max_dma_maps\":65535,\"pgsizes\":4096}}");
	close(c);
}

static void device_is_pci_with_reset(void **state)
{
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	int c = greeted(path0);

	(void)state;
	assert_int_equal(call(c, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info)), 0);
	assert_int_equal(info.argsz, 16);
	assert_int_equal(info.flags, VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
	assert_int_equal(info.num_regions, VFIO_PCI_NUM_REGIONS);
	assert_int_equal(info.num_irqs, NUM_IRQS);
	close(c);
}

/* PCI-3: there are pages enough for all doorbells. */
static void regions_have_their_sizes_and_none_is_mappable(void **state)
{
	static const uint64_t size[VFIO_PCI_NUM_REGIONS] = {
		[BAR0] = 0x8000, [BAR2] = 16 * MIB, [CONFIG] = 4096 };
	struct vfio_user_region_info info;
	int c = greeted(path0);
	uint32_t i;

	(void)state;
	for (i = 0; i < VFIO_PCI_NUM_REGIONS; i++) {
		info = (struct vfio_user_region_info){ .argsz = sizeof(info), .index = i };
		assert_int_equal(call(c, VFIO_USER_DEVICE_GET_REGION_INFO, &info, sizeof(info)), 0);
		assert_int_equal(info.argsz, 32);
		assert_int_equal(info.index, i);
		assert_int_equal(info.size, size[i]);
		assert_int_equal(info.flags, size[i] ? VFIO_REGION_INFO_FLAG_READ |
						       VFIO_REGION_INFO_FLAG_WRITE : 0);
	}
	info = (struct vfio_user_region_info){ .argsz = sizeof(info), .index = i };
	assert_int_equal(call(c, VFIO_USER_DEVICE_GET_REGION_INFO, &info, sizeof(info)), EINVAL);
	close(c);
}

/* PCI-2: as many vectors as the capability says. */
static void only_msix_has_vectors(void **state)
{
	struct vfio_user_irq_info info;
	int c = greeted(path0);
	uint32_t i;

	(void)state;
	for (i = 0; i < NUM_IRQS; i++) {
		info = (struct vfio_user_irq_info){ .argsz = sizeof(info), .index = i };
		assert_int_equal(call(c, VFIO_USER_DEVICE_GET_IRQ_INFO, &info, sizeof(info)), 0);
		assert_int_equal(info.count, i == VFIO_PCI_MSIX_IRQ_INDEX ? 64 : 0);
	}
	info = (struct vfio_user_irq_info){ .argsz = sizeof(info), .index = i };
	assert_int_equal(call(c, VFIO_USER_DEVICE_GET_IRQ_INFO, &info, sizeof(info)), EINVAL);
	close(c);
}

static void unknown_commands_are_not_supported(void **state)
{
	static const unsigned int unknown[] = { 0, 6, 11, 12, 14, 15, 16, 17, 255, 65535 };
	int c = greeted(path0);
	uint8_t body[100] = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(call(c, unknown[i], body, sizeof(body)), ENOTSUP);
	assert_int_equal(region_read(c, BAR0, 0x20, 4), 0x20);
	close(c);
}

/* Configuration space */

static void config_header_is_skua(void **state)
{
	int c = greeted(path0);

	(void)state;
	assert_int_equal(region_read(c, CONFIG, PCI_VENDOR_ID, 4), 0x10f71af4);
	assert_int_equal(region_read(c, CONFIG, PCI_CLASS_REVISION, 4), 0x02000000);
	assert_int_equal(region_read(c, CONFIG, PCI_HEADER_TYPE, 1), 0);
	assert_int_equal(region_read(c, CONFIG, PCI_INTERRUPT_PIN, 1), 0);
	assert_int_equal(region_read(c, CONFIG, PCI_COMMAND, 2), 0);
	region_write(c, CONFIG, PCI_VENDOR_ID, 0, 4);
	assert_int_equal(region_read(c, CONFIG, PCI_VENDOR_ID, 4), 0x10f71af4);
	close(c);
}

/* PCI-1: two of 64 bits. */
static void bars_answer_sizing(void **state)
{
	int c = greeted(path0);

	(void)state;
	region_write(c, CONFIG, PCI_BASE_ADDRESS_0, UINT64_MAX, 8);
	assert_int_equal(region_read(c, CONFIG, PCI_BASE_ADDRESS_0, 8), 0xffffffffffff8004);
	region_write(c, CONFIG, PCI_BASE_ADDRESS_2, UINT64_MAX, 8);
	assert_int_equal(region_read(c, CONFIG, PCI_BASE_ADDRESS_2, 8), 0xffffffffff00000c);
	region_write(c, CONFIG, PCI_BASE_ADDRESS_4, UINT64_MAX, 8);
	assert_int_equal(region_read(c, CONFIG, PCI_BASE_ADDRESS_4, 8), 0);
	region_write(c, CONFIG, PCI_ROM_ADDRESS, 0xffffffff, 4);
	assert_int_equal(region_read(c, CONFIG, PCI_ROM_ADDRESS, 4), 0);
	close(c);
}

/* PCI-1 PCI-2: these, and no others; MSI-X has as many vectors as there are. */
static void capabilities_are_pm_msix_and_express(void **state)
{
	int c = greeted(path0);
	unsigned int pos, n = 0, seen[8];

	(void)state;
	assert_true(region_read(c, CONFIG, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	for (pos = region_read(c, CONFIG, PCI_CAPABILITY_LIST, 1); pos && n < 8;
	     pos = region_read(c, CONFIG, pos + 1, 1))
		seen[n++] = region_read(c, CONFIG, pos, 1);
	assert_int_equal(n, 3);
	assert_int_equal(seen[0], PCI_CAP_ID_PM);
	assert_int_equal(seen[1], PCI_CAP_ID_MSIX);
	assert_int_equal(seen[2], PCI_CAP_ID_EXP);
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_MSIX + 2, 2), 63);
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_MSIX + 4, 4), 0x4000);
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_MSIX + 8, 4), 0x6000);
	assert_true(region_read(c, CONFIG, CONFIG_CAP_EXP + PCI_EXP_DEVCAP, 4) &
		    PCI_EXP_DEVCAP_FLR);
	/* 16 lanes of 16 GT/s, as monitoring shows them. */
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_EXP + PCI_EXP_LNKSTA, 2), 16 << 4 | 4);
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_EXP + PCI_EXP_LNKCAP, 4), 16 << 4 | 4);
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_EXP + PCI_EXP_LNKCAP2, 4), 0x1e);
	assert_int_equal(region_read(c, CONFIG, 0x100, 4), 0);
	close(c);
}

static void config_space_reads_as_a_whole(void **state)
{
	struct vfio_user_region_access a = { 0, CONFIG, 4096 };
	uint8_t reply[sizeof(a) + 4096];
	int c = greeted(path0);
	size_t n;

	(void)state;
	send_command(c, VFIO_USER_REGION_READ, &a, sizeof(a), NULL, 0);
	assert_int_equal(receive_reply(c, VFIO_USER_REGION_READ, reply, &n), 0);
	assert_int_equal(n, sizeof(reply));
	assert_int_equal(reply[sizeof(a)], 0xf4);
	close(c);
}

/* MEM-13: the device knows as soon as the write is complete. */
static void bus_master_bit_reaches_the_device(void **state)
{
	int c = greeted(path0);

	(void)state;
	region_write(c, CONFIG, PCI_COMMAND, 0xffff, 2);
	assert_int_equal(region_read(c, CONFIG, PCI_COMMAND, 2), 0x0546);
	assert_true(dev->bus_master);
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MEMORY, 1);
	assert_false(dev->bus_master);
	close(c);
}

/* RST-7 PCI-1: there are D0 and D3hot, and no other states. */
static void d3_has_no_bus_master_and_no_memory_space(void **state)
{
	int c = greeted(path0);
	unsigned int writes;

	(void)state;
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY, 2);
	region_write(c, CONFIG, CONFIG_CAP_PM + PCI_PM_CTRL, 3, 2);
	assert_false(dev->bus_master);
	assert_int_equal(region_read(c, BAR0, 0, 4), 0xffffffff);
	writes = dev->bar_writes;
	region_write(c, BAR2, 0, 1, 4);
	assert_int_equal(dev->bar_writes, writes);
	region_write(c, CONFIG, CONFIG_CAP_PM + PCI_PM_CTRL, 0, 2);
	assert_true(dev->bus_master);
	assert_int_equal(region_read(c, BAR0, 4, 4), 4);
	/* D1 and D2 do not exist. */
	region_write(c, CONFIG, CONFIG_CAP_PM + PCI_PM_CTRL, 1, 2);
	assert_int_equal(region_read(c, CONFIG, CONFIG_CAP_PM + PCI_PM_CTRL, 2) & 3, 0);
	close(c);
}

/* RST-1: configuration space has its first values then. */
static void flr_resets_device_and_config_but_keeps_memory_and_vectors(void **state)
{
	int c = greeted(path0), mem = memory(MIB, 0), efd = eventfd(0, EFD_NONBLOCK);
	unsigned int resets = dev->resets;
	uint64_t n;

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, mem), 0);
	assert_int_equal(set_irqs(c, SET_EVENTFD, 3, 1, &efd, 1), 0);
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	region_write(c, CONFIG, PCI_BASE_ADDRESS_0, 0xfe000000, 4);
	region_write(c, CONFIG, CONFIG_CAP_EXP + PCI_EXP_DEVCTL,
		     PCI_EXP_DEVCTL_BCR_FLR | PCI_EXP_DEVCTL_RELAX_EN, 2);
	assert_int_equal(dev->resets, resets + 1);
	assert_false(dev->bus_master);
	assert_int_equal(region_read(c, CONFIG, PCI_COMMAND, 2), 0);
	assert_int_equal(region_read(c, CONFIG, PCI_BASE_ADDRESS_0, 4), 4);
	assert_false(region_read(c, CONFIG, CONFIG_CAP_EXP + PCI_EXP_DEVCTL, 2) &
		     PCI_EXP_DEVCTL_BCR_FLR);
	assert_non_null(double_mem_at(dev, 0));
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	dev->ops->raise_irq(dev->host, 3);
	assert_int_equal(read(efd, &n, sizeof(n)), sizeof(n));
	close(c);
	close(mem);
	close(efd);
}

static void device_reset_is_a_reset(void **state)
{
	int c = greeted(path0);
	unsigned int resets = dev->resets;

	(void)state;
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	assert_int_equal(call_fds(c, VFIO_USER_DEVICE_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(dev->resets, resets + 1);
	assert_false(dev->bus_master);
	close(c);
}

/* BARs */

static void bar_accesses_reach_the_device(void **state)
{
	int c = greeted(path0);

	(void)state;
	region_write(c, BAR0, 0x40, 0x12345678, 4);
	assert_int_equal(dev->last.bar, 0);
	assert_int_equal(dev->last.offset, 0x40);
	assert_int_equal(dev->last.len, 4);
	assert_int_equal(dev->last.value, 0x12345678);
	region_write(c, BAR2, 0xfffff8, 0x1122334455667788, 8);
	assert_int_equal(dev->last.bar, 2);
	assert_int_equal(dev->last.offset, 0xfffff8);
	assert_int_equal(dev->last.value, 0x1122334455667788);
	assert_int_equal(region_read(c, BAR2, 0x1004, 4), 0x02001004);
	assert_int_equal(region_read(c, BAR0, 0x8, 1), 0x8);
	close(c);
}

/* REG-2: the MSI-X table and its pending bits lie among the registers. */
static void msix_table_and_pba_are_not_the_devices(void **state)
{
	int c = greeted(path0);
	unsigned int reads = dev->bar_reads, writes = dev->bar_writes;

	(void)state;
	assert_int_equal(region_read(c, BAR0, 0x4000 + 12, 4), 1);
	region_write(c, BAR0, 0x4000 + 63 * 16, 0xfee00000, 8);
	assert_int_equal(region_read(c, BAR0, 0x4000 + 63 * 16, 8), 0xfee00000);
	region_write(c, BAR0, 0x6000, UINT64_MAX, 8);
	assert_int_equal(region_read(c, BAR0, 0x6000, 8), 0);
	assert_int_equal(dev->bar_reads, reads);
	assert_int_equal(dev->bar_writes, writes);
	close(c);
}

static void posted_writes_come_many_at_once_and_without_replies(void **state)
{
	struct {
		struct vfio_user_hdr hdr;
		struct vfio_user_region_access a;
		uint32_t value;
	} m[100];
	int c = greeted(path0);
	unsigned int i, writes = dev->bar_writes;
	char byte;

	(void)state;
	for (i = 0; i < 100; i++) {
		m[i].hdr = (struct vfio_user_hdr){ .command = VFIO_USER_REGION_WRITE,
			.size = 36, .flags = VFIO_USER_F_NO_REPLY };
		m[i].a = (struct vfio_user_region_access){ 4096 * i, BAR2, 4 };
		m[i].value = i;
		memmove((char *)m + 36 * i, &m[i], 36);
	}
	send_fds(c, m, 36 * 100, NULL, 0);
	assert_int_equal(dev->bar_writes, writes + 100);
	assert_int_equal(dev->last.offset, 99 * 4096);
	assert_int_equal(dev->last.value, 99);
	assert_int_equal(recv(c, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close(c);
}

/* Interrupts */

static void vectors_are_eventfds(void **state)
{
	int c = mastering(path0), efd[16], i;
	uint64_t n;

	(void)state;
	for (i = 0; i < 16; i++)
		efd[i] = eventfd(0, 0);		/* the server makes them non-blocking */
	assert_int_equal(set_irqs(c, SET_EVENTFD, 48, 16, efd, 16), 0);
	for (i = 0; i < 16; i++) {
		dev->ops->raise_irq(dev->host, 48 + i);
		dev->ops->raise_irq(dev->host, 48 + i);
		assert_int_equal(read(efd[i], &n, sizeof(n)), sizeof(n));
		assert_int_equal(n, 2);
	}
	/* A full counter does not stop anyone. */
	n = UINT64_MAX - 1;
	assert_int_equal(write(efd[0], &n, sizeof(n)), sizeof(n));
	dev->ops->raise_irq(dev->host, 48);
	for (i = 0; i < 16; i++)
		close(efd[i]);
	close(c);
}

/* RST-7: an interrupt is a write to memory. */
static void without_bus_mastering_there_is_no_interrupt(void **state)
{
	int c = greeted(path0), efd = eventfd(0, EFD_NONBLOCK);
	uint64_t n;

	(void)state;
	assert_int_equal(set_irqs(c, SET_EVENTFD, 2, 1, &efd, 1), 0);
	region_write(c, CONFIG, CONFIG_CAP_MSIX + 2, PCI_MSIX_FLAGS_ENABLE, 2);
	dev->ops->raise_irq(dev->host, 2);
	dev->ops->raise_irq(dev->host, 3);
	assert_int_equal(read(efd, &n, sizeof(n)), -1);
	assert_int_equal(region_read(c, BAR0, 0x6000, 8), 0);
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	dev->ops->raise_irq(dev->host, 2);
	assert_int_equal(read(efd, &n, sizeof(n)), sizeof(n));
	/* In D3hot there is none either. */
	region_write(c, CONFIG, CONFIG_CAP_PM + PCI_PM_CTRL, 3, 2);
	dev->ops->raise_irq(dev->host, 2);
	assert_int_equal(read(efd, &n, sizeof(n)), -1);
	close(efd);
	close(c);
}

static void vectors_can_be_taken_away(void **state)
{
	int c = mastering(path0), efd = eventfd(0, EFD_NONBLOCK);
	uint64_t n;

	(void)state;
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 1, &efd, 1), 0);
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 1, NULL, 0), 0);
	dev->ops->raise_irq(dev->host, 0);
	assert_int_equal(read(efd, &n, sizeof(n)), -1);
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 1, &efd, 1), 0);
	assert_int_equal(set_irqs(c, SET_NONE, 0, 0, NULL, 0), 0);
	dev->ops->raise_irq(dev->host, 0);
	assert_int_equal(read(efd, &n, sizeof(n)), -1);
	close(efd);
	close(c);
}

static void clients_can_trigger_vectors(void **state)
{
	int c = greeted(path0), efd = eventfd(0, EFD_NONBLOCK);
	uint64_t n;

	(void)state;
	assert_int_equal(set_irqs(c, SET_EVENTFD, 7, 1, &efd, 1), 0);
	assert_int_equal(set_irqs(c, SET_NONE, 7, 1, NULL, 0), 0);
	assert_int_equal(read(efd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(set_irqs(c, VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK, 7, 1,
				  NULL, 0), ENOTSUP);
	close(efd);
	close(c);
}

/* PCI-2: a vector is pending until the client can be told. */
static void interrupts_without_eventfd_are_pending(void **state)
{
	int c = mastering(path0), efd = eventfd(0, EFD_NONBLOCK);
	uint64_t n;

	(void)state;
	dev->ops->raise_irq(dev->host, 5);	/* MSI-X is off: lost */
	assert_int_equal(region_read(c, BAR0, 0x6000, 8), 0);
	region_write(c, CONFIG, CONFIG_CAP_MSIX + 2, PCI_MSIX_FLAGS_ENABLE, 2);
	dev->ops->raise_irq(dev->host, 5);
	assert_int_equal(region_read(c, BAR0, 0x6000, 8), 1 << 5);
	assert_int_equal(set_irqs(c, SET_EVENTFD, 5, 1, &efd, 1), 0);
	assert_int_equal(read(efd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(region_read(c, BAR0, 0x6000, 8), 0);
	close(efd);
	close(c);
}

static _Atomic bool stop_raising;

static void *raise_all_the_time(void *arg)
{
	unsigned int v = 0;

	(void)arg;
	while (!stop_raising)
		dev->ops->raise_irq(dev->host, v++ % 4);
	return NULL;
}

static void vectors_change_while_other_threads_raise_them(void **state)
{
	int c = mastering(path0), efd[4], i;
	pthread_t thread;

	(void)state;
	for (i = 0; i < 4; i++)
		efd[i] = eventfd(0, EFD_NONBLOCK);
	stop_raising = false;
	pthread_create(&thread, NULL, raise_all_the_time, NULL);
	for (i = 0; i < 500; i++) {
		assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 4, efd, 4), 0);
		assert_int_equal(set_irqs(c, SET_NONE, 0, 0, NULL, 0), 0);
	}
	stop_raising = true;
	pthread_join(thread, NULL);
	for (i = 0; i < 4; i++)
		close(efd[i]);
	close(c);
}

/* Memory */

static void memory_is_shared_with_the_guest(void **state)
{
	int c = greeted(path0);
	int fd = memory(4 * MIB, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	uint8_t *guest = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct double_mem *low, *high;

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	assert_int_equal(dma_map_at(c, 1ull << 32, 2 * MIB, 2 * MIB, VFIO_DMA_MAP_FLAG_READ,
				    fd), 0);
	low = double_mem_at(dev, 0);
	high = double_mem_at(dev, 1ull << 32);
	assert_true(low->writable);
	assert_false(high->writable);
	/* One mapping for both. */
	assert_ptr_equal(high->host, low->host + 2 * MIB);
	guest[2 * MIB] = 42;
	assert_int_equal(high->host[0], 42);
	low->host[5] = 43;
	assert_int_equal(guest[5], 43);
	munmap(guest, 4 * MIB);
	close(fd);
	close(c);
}

static void a_file_stays_mapped_while_its_regions_come_and_go(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0);
	uint8_t *host;

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	host = double_mem_at(dev, 0)->host;
	assert_int_equal(dma_unmap_at(c, 0, MIB), 0);
	assert_null(double_mem_at(dev, 0));
	assert_int_equal(dma_map_at(c, 0x10000, 0x10000, 0, MAP_RW, fd), 0);
	assert_ptr_equal(double_mem_at(dev, 0x10000)->host, host);
	close(fd);
	close(c);
}

static void a_file_of_tmpfs_is_memory(void **state)
{
	char path[] = "/dev/shm/skuad-test-XXXXXX";
	int c = greeted(path0), fd = mkstemp(path);

	(void)state;
	assert_return_code(fd, errno);
	unlink(path);
	assert_return_code(ftruncate(fd, MIB), errno);
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	double_mem_at(dev, 0)->host[MIB - 1] = 1;
	close(fd);
	close(c);
}

static void a_file_that_grew_is_mapped_anew(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	assert_return_code(ftruncate(fd, 2 * MIB), errno);
	assert_int_equal(dma_map_at(c, MIB, MIB, MIB, MAP_RW, fd), 0);
	double_mem_at(dev, MIB)->host[MIB - 1] = 1;
	close(fd);
	close(c);
}

static void more_files_than_kept_replace_unused_ones(void **state)
{
	int c = greeted(path0), i;

	(void)state;
	for (i = 0; i < 150; i++) {
		int fd = memory(4096, 0);

		assert_int_equal(dma_map_at(c, 0, 4096, 0, MAP_RW, fd), 0);
		double_mem_at(dev, 0)->host[0] = 1;
		assert_int_equal(dma_unmap_at(c, 0, 4096), 0);
		close(fd);
	}
	close(c);
}

static void a_file_that_is_read_only_serves_read_only_regions(void **state)
{
	int c = greeted(path0), fd = memory(MIB, F_SEAL_SHRINK | F_SEAL_WRITE);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, 4096, 0, VFIO_DMA_MAP_FLAG_READ, fd), 0);
	assert_int_equal(double_mem_at(dev, 0)->host[0], 0);
	assert_int_equal(dma_map_at(c, 4096, 4096, 0, MAP_RW, fd), EINVAL);
	close(fd);
	assert_fault(c, "its file cannot be mapped");
}

static void regions_without_a_file_are_out_of_reach(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0);

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	assert_int_equal(dma_map_at(c, 0xfff00000, MIB, 0, VFIO_DMA_MAP_FLAG_READ, -1), 0);
	assert_null(double_mem_at(dev, 0xfff00000));
	assert_int_equal(dma_map_at(c, 0xfff00000, MIB, 0, VFIO_DMA_MAP_FLAG_READ, -1), EEXIST);
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	assert_int_equal(dma_unmap_at(c, 0xfff00000, MIB), 0);
	close(fd);
	close(c);
}

static void overlapping_regions_are_refused(void **state)
{
	int c = greeted(path0), fd = memory(4 * MIB, 0);

	(void)state;
	assert_int_equal(dma_map_at(c, MIB, MIB, 0, MAP_RW, fd), 0);
	assert_int_equal(dma_map_at(c, MIB, MIB, 0, MAP_RW, fd), EEXIST);
	assert_int_equal(dma_map_at(c, 0, MIB + 4096, 0, MAP_RW, fd), EEXIST);
	assert_int_equal(dma_map_at(c, 2 * MIB - 4096, 4096, 0, MAP_RW, fd), EEXIST);
	assert_int_equal(dma_map_at(c, 0, 4 * MIB, 0, MAP_RW, fd), EEXIST);
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	assert_int_equal(dma_map_at(c, 2 * MIB, MIB, 0, MAP_RW, fd), 0);
	assert_int_equal(dma_map_at(c, -(uint64_t)MIB, MIB, 0, MAP_RW, fd), 0);
	close(fd);
	close(c);
}

/* A guest's IOMMU maps page by page. Unmapping takes as many steps as it needs (work.h), and there is no answer before;
 * what comes behind it waits. */
static void unmapping_many_regions_takes_steps(void **state)
{
	const unsigned int n = 4096;
	struct vfio_user_dma_unmap unmap = { sizeof(unmap), 0, 0, n * 4096 };
	struct vfio_user_device_info info = { .argsz = sizeof(info) };
	int c = greeted(path0), fd = memory(MIB, 0);
	struct message m, two;
	unsigned int steps;
	size_t len;

	(void)state;
	assert_int_equal(dma_map_at(c, n * 4096, MIB, 0, MAP_RW, fd), 0);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(dma_map_at(c, i * 4096, 4096, 0, VFIO_DMA_MAP_FLAG_READ, -1), 0);
		if (round) {
			unmap.flags = VFIO_DMA_UNMAP_FLAG_ALL;
			unmap.size = 0;
		}
		len = make(&m, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap));
		assert_int_equal(send(c, &m, len, 0), len);
		len = make(&two, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info));
		assert_int_equal(send(c, &two, len, 0), len);
		for (steps = 0; recv(c, &m, sizeof(m), MSG_DONTWAIT | MSG_PEEK) < 0; steps++)
			assert_true(engine_step(engine));
		assert_true(steps > 20);
		pump();
		assert_int_equal(recv(c, &m.hdr, sizeof(m.hdr), MSG_DONTWAIT), sizeof(m.hdr));
		assert_int_equal(m.hdr.command, VFIO_USER_DMA_UNMAP);
		assert_int_equal(recv(c, &unmap, sizeof(unmap), MSG_DONTWAIT), sizeof(unmap));
		assert_int_equal(unmap.size, n * 4096 + (round ? MIB : 0));
		assert_int_equal(recv(c, &m.hdr, sizeof(m.hdr), MSG_DONTWAIT), sizeof(m.hdr));
		assert_int_equal(m.hdr.command, VFIO_USER_DEVICE_GET_INFO);
		assert_int_equal(recv(c, &info, sizeof(info), MSG_DONTWAIT), sizeof(info));
	}
	/* So does giving back what a client had that leaves. */
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(dma_map_at(c, i * 4096, 4096, 0, VFIO_DMA_MAP_FLAG_READ, -1), 0);
	close(fd);
	close(c);
	for (steps = 0; engine_step(engine); steps++)
		;
	assert_true(steps > 20);
}

/* Nor does the next client cut that short, which leaves as it comes. */
static void the_next_client_waits_until_regions_are_freed(void **state)
{
	int c = greeted(path0), next;
	unsigned int steps;

	(void)state;
	for (unsigned int i = 0; i < 4096; i++)
		assert_int_equal(dma_map_at(c, i * 4096, 4096, 0, VFIO_DMA_MAP_FLAG_READ, -1), 0);
	close(c);
	engine_step(engine);
	assert_int_equal(logged("skua0: the client has disconnected"), 1);
	next = client_knock(path0);
	close(next);
	for (steps = 0; engine_step(engine); steps++)
		;
	assert_true(steps > 20);
	assert_int_equal(logged("skua0: the client has disconnected"), 2);
	c = greeted(path0);
	close(c);
}

/* As many as fit in the buffer come at once, and are served in turns. */
static void many_messages_are_served_in_steps(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0);
	struct { struct vfio_user_region_access a; uint64_t value; } __attribute__((packed)) w = {
		.a = { .offset = 4096, .region = BAR2, .count = 8 } };
	unsigned int before, steps;
	struct message m;
	size_t len;

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	before = dev->bar_writes;
	for (unsigned int i = 0; i < 200; i++) {
		w.value = i;
		len = make(&m, VFIO_USER_REGION_WRITE, &w, sizeof(w));
		m.hdr.flags |= VFIO_USER_F_NO_REPLY;
		assert_int_equal(send(c, &m, len, 0), len);
	}
	for (steps = 0; engine_step(engine); steps++)
		;
	assert_int_equal(dev->bar_writes - before, 200);
	assert_int_equal(dev->last.value, 199);
	assert_true(steps >= 200 / 64);
	close(fd);
	close(c);
}

static void ring_once(int c, uint64_t value)
{
	struct { struct vfio_user_region_access a; uint64_t value; } __attribute__((packed)) w = {
		.a = { .offset = 4096, .region = BAR2, .count = 8 }, .value = value };
	struct message m;
	size_t len = make(&m, VFIO_USER_REGION_WRITE, &w, sizeof(w));

	m.hdr.flags |= VFIO_USER_F_NO_REPLY;
	assert_int_equal(send(c, &m, len, 0), len);
}

/* Not one by one; and the last ones when there are no more of them. */
static void doorbells_that_flood_in_are_served_many_at_a_time(void **state)
{
	int c = greeted(path0);
	unsigned int before = dev->bar_writes;

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		dev->flooded = true;
		ring_once(c, i);
		pump();
		assert_int_equal(dev->bar_writes - before, 1);
		for (unsigned int j = 1; j < 50; j++) {
			ring_once(c, j);
			pump();
		}
		assert_int_equal(dev->bar_writes - before, 1);
		dev->flooded = false;
		engine->resting = NULL;
		pump();
		assert_int_equal(dev->bar_writes - before, 50);
		ring_once(c, 50);
		pump();
		assert_int_equal(dev->bar_writes - before, 51);
		before = dev->bar_writes;
	}
	dev->flooded = true;
	ring_once(c, 0);
	pump();
	close(c);
	engine->resting = NULL;
	pump();
	assert_int_equal(logged("skua0: the client has disconnected"), 1);
	dev->flooded = false;
}

static void unmap_takes_whole_regions_only(void **state)
{
	struct vfio_user_dma_unmap all = { sizeof(all), VFIO_DMA_UNMAP_FLAG_ALL, 0, 0 };
	struct vfio_user_dma_unmap dirty = {
		sizeof(dirty), VFIO_DMA_UNMAP_FLAG_GET_DIRTY_BITMAP, 0, MIB };
	int c = greeted(path0), fd = memory(4 * MIB, 0);
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(dma_map_at(c, i * MIB, MIB, i * MIB, MAP_RW, fd), 0);
	assert_int_equal(dma_unmap_at(c, 8 * MIB, MIB), 0);
	assert_int_equal(dma_unmap_at(c, 0, 4096), EINVAL);
	assert_int_equal(dma_unmap_at(c, 4096, MIB), EINVAL);
	assert_int_equal(dma_unmap_at(c, 0, 0), EINVAL);
	assert_int_equal(dma_unmap_at(c, UINT64_MAX, 2), EINVAL);
	assert_int_equal(call(c, VFIO_USER_DMA_UNMAP, &dirty, sizeof(dirty)), ENOTSUP);
	assert_non_null(double_mem_at(dev, 0));
	/* A guest's IOMMU unmaps by the power of two. */
	assert_int_equal(dma_unmap_at(c, 0, 2 * MIB), 0);
	assert_null(double_mem_at(dev, 0));
	assert_null(double_mem_at(dev, MIB));
	assert_non_null(double_mem_at(dev, 2 * MIB));
	assert_int_equal(call(c, VFIO_USER_DMA_UNMAP, &all, sizeof(all)), 0);
	assert_int_equal(all.size, 2 * MIB);
	assert_null(double_mem_at(dev, 2 * MIB));
	close(fd);
	close(c);
}

/* Clients come and go */

static void the_next_client_finds_the_device_as_new(void **state)
{
	int c = greeted(path0), fd = memory(MIB, 0), efd = eventfd(0, EFD_NONBLOCK);
	unsigned int resets = dev->resets;
	uint64_t n;

	(void)state;
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 1, &efd, 1), 0);
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	close(c);
	pump();
	assert_int_equal(logged("skua0: the client has disconnected"), 1);
	assert_int_equal(logged("connection ended"), 0);
	assert_false(dev->bus_master);
	assert_null(double_mem_at(dev, 0));
	assert_true(dev->resets > resets);
	dev->ops->raise_irq(dev->host, 0);
	assert_int_equal(read(efd, &n, sizeof(n)), -1);
	c = greeted(path0);
	assert_int_equal(region_read(c, CONFIG, PCI_COMMAND, 2), 0);
	assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
	close(fd);
	close(efd);
	close(c);
}

static unsigned int open_fds(void)
{
	unsigned int n = 0;
	int i;

	for (i = 0; i < 1024; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

static void sessions_leave_no_descriptors_behind(void **state)
{
	unsigned int before, i;
	int fd = memory(MIB, 0);

	(void)state;
	before = open_fds();
	for (i = 0; i < 20; i++) {
		int c = greeted(path0), efd = eventfd(0, EFD_NONBLOCK);
		int two[2] = { efd, efd };

		assert_int_equal(dma_map_at(c, 0, MIB, 0, MAP_RW, fd), 0);
		assert_int_equal(set_irqs(c, SET_EVENTFD, 0, 2, two, 2), 0);
		/* Sixteen with half a message. */
		send_fds(c, "\1\0\7", 3, two, 2);
		close(efd);
		close(c);
		pump();
	}
	assert_soon(open_fds() == before);
	close(fd);
}

static void destroying_a_served_device_ends_the_session(void **state)
{
	struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
	struct vfu *v = vfu_create(engine, NULL, &config);
	int pair[2], fd = memory(MIB, 0);

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	vfu_serve(v, pair[0]);
	assert_int_equal(try_version(pair[1], 0), 0);
	assert_int_equal(dma_map_at(pair[1], 0, MIB, 0, MAP_RW, fd), 0);
	vfu_destroy(v);
	assert_true(ended(pair[1]));
	close(pair[1]);
	close(fd);
}

/* A reset would end QEMU: what nobody has read is read, and what is asked is answered. */
static void a_connection_is_closed_and_not_reset(void **state)
{
	static const uint8_t garbage[40000];

	(void)state;
	for (int fault = 0; fault < 2; fault++) {
		struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
		struct vfu *v = vfu_create(engine, NULL, &config);
		struct vfio_user_device_info info = { .argsz = sizeof(info) };
		struct message m;
		uint8_t byte;
		int pair[2];
		size_t size;

		assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
		vfu_serve(v, pair[0]);
		assert_int_equal(try_version(pair[1], 0), 0);
		/* Sent without letting the server work. */
		size = make(&m, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info));
		assert_int_equal(send(pair[1], &m, size, 0), size);
		if (fault) {
			/* More than it receives at once, the first of it no message. */
			assert_int_equal(send(pair[1], garbage, sizeof(garbage), 0), sizeof(garbage));
			pump();
		} else {
			vfu_destroy(v);
		}
		assert_int_equal(receive_reply(pair[1], VFIO_USER_DEVICE_GET_INFO, &m, &size), 0);
		assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
		close(pair[1]);
		if (fault)
			vfu_destroy(v);
	}
}

static void a_socket_left_behind_is_replaced_and_a_live_one_is_not(void **state)
{
	struct skua_dev_config config = { .name = "skua2", .link = "wire:t" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), c;
	struct vfu *v;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/stale", dir);
	assert_return_code(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), errno);
	close(fd);
	v = vfu_create(engine, addr.sun_path, &config);
	assert_non_null(v);
	assert_null(vfu_create(engine, addr.sun_path, &config));
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(logged("Address already in use"), 1);
	c = greeted(addr.sun_path);
	close(c);
	vfu_destroy(v);
	assert_int_equal(access(addr.sun_path, F_OK), -1);
}

/* The listener stays readable, and is not looked at all the time. */
static void without_descriptors_the_listener_rests(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rlimit all, few;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	/* The engine polls one at a time. */
	few = (struct rlimit){ 1, all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_return_code(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), errno);
	pump();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_int_equal(logged("skua0: a client cannot be accepted: Too many open files"), 1);
	engine->resting = NULL;
	pump();
	assert_int_equal(logged("skua0: a client has connected"), 1);
	close(fd);
	pump();
}

/* Messages in pieces */

static void messages_may_come_byte_by_byte(void **state)
{
	int c = client_connect(path0), efd = eventfd(0, EFD_NONBLOCK);
	struct vfio_user_irq_set set = {
		sizeof(set), SET_EVENTFD, VFIO_PCI_MSIX_IRQ_INDEX, 9, 1 };
	struct vfio_user_version v = { 0, 0 };
	uint8_t reply[VFIO_USER_MAX_MSG];
	struct message m;
	size_t size, i, n;
	uint64_t count;

	(void)state;
	size = make(&m, VFIO_USER_VERSION, &v, sizeof(v));
	for (i = 0; i < size; i++)
		send_fds(c, (uint8_t *)&m + i, 1, NULL, 0);
	assert_int_equal(receive_reply(c, VFIO_USER_VERSION, reply, &n), 0);
	size = make(&m, VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set));
	for (i = 0; i < size; i++)
		send_fds(c, (uint8_t *)&m + i, 1, &efd, i == 7);
	assert_int_equal(receive_reply(c, VFIO_USER_DEVICE_SET_IRQS, reply, &n), 0);
	region_write(c, CONFIG, PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	dev->ops->raise_irq(dev->host, 9);
	assert_int_equal(read(efd, &count, sizeof(count)), sizeof(count));
	close(efd);
	close(c);
}

/* As QEMU sends them: a region without a file, then two with, nobody waiting in between. */
static void descriptors_go_to_the_message_they_came_with(void **state)
{
	int c = greeted(path0), one = memory(MIB, 0), two = memory(MIB, 0), i;
	struct vfio_user_dma_map map[3];
	uint8_t reply[VFIO_USER_MAX_MSG];
	struct stat st;
	size_t n;

	(void)state;
	assert_return_code(pwrite(one, "1", 1, 0), errno);
	assert_return_code(pwrite(two, "2", 1, 0), errno);
	for (i = 0; i < 3; i++)
		map[i] = (struct vfio_user_dma_map){ sizeof(map[i]), MAP_RW, 0, i * MIB, MIB };
	/* Written without letting the server work. */
	for (i = 0; i < 3; i++) {
		union {
			struct cmsghdr align;
			char buf[CMSG_SPACE(sizeof(int))];
		} control = { 0 };
		struct message m;
		struct iovec iov = { &m, make(&m, VFIO_USER_DMA_MAP, &map[i], sizeof(map[i])) };
		struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

		if (i) {
			mh.msg_control = control.buf;
			mh.msg_controllen = sizeof(control.buf);
			control.align = (struct cmsghdr){
				CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), i == 1 ? &one : &two, sizeof(int));
		}
		assert_int_equal(sendmsg(c, &mh, 0), iov.iov_len);
	}
	pump();
	for (i = 0; i < 3; i++)
		assert_int_equal(receive_reply(c, VFIO_USER_DMA_MAP, reply, &n), 0);
	assert_null(double_mem_at(dev, 0));
	assert_int_equal(double_mem_at(dev, MIB)->host[0], '1');
	assert_int_equal(double_mem_at(dev, 2 * MIB)->host[0], '2');
	assert_return_code(fstat(one, &st), errno);
	close(one);
	close(two);
	close(c);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(version_is_agreed_with_our_limits),
		TEST(device_is_pci_with_reset),
		TEST(regions_have_their_sizes_and_none_is_mappable),
		TEST(only_msix_has_vectors),
		TEST(unknown_commands_are_not_supported),
		TEST(config_header_is_skua),
		TEST(bars_answer_sizing),
		TEST(capabilities_are_pm_msix_and_express),
		TEST(config_space_reads_as_a_whole),
		TEST(bus_master_bit_reaches_the_device),
		TEST(d3_has_no_bus_master_and_no_memory_space),
		TEST(flr_resets_device_and_config_but_keeps_memory_and_vectors),
		TEST(device_reset_is_a_reset),
		TEST(bar_accesses_reach_the_device),
		TEST(msix_table_and_pba_are_not_the_devices),
		TEST(posted_writes_come_many_at_once_and_without_replies),
		TEST(vectors_are_eventfds),
		TEST(without_bus_mastering_there_is_no_interrupt),
		TEST(vectors_can_be_taken_away),
		TEST(clients_can_trigger_vectors),
		TEST(interrupts_without_eventfd_are_pending),
		TEST(vectors_change_while_other_threads_raise_them),
		TEST(memory_is_shared_with_the_guest),
		TEST(a_file_stays_mapped_while_its_regions_come_and_go),
		TEST(a_file_of_tmpfs_is_memory),
		TEST(a_file_that_grew_is_mapped_anew),
		TEST(more_files_than_kept_replace_unused_ones),
		TEST(a_file_that_is_read_only_serves_read_only_regions),
		TEST(regions_without_a_file_are_out_of_reach),
		TEST(overlapping_regions_are_refused),
		TEST(unmap_takes_whole_regions_only),
		TEST(unmapping_many_regions_takes_steps),
		TEST(the_next_client_waits_until_regions_are_freed),
		TEST(many_messages_are_served_in_steps),
		TEST(doorbells_that_flood_in_are_served_many_at_a_time),
		TEST(the_next_client_finds_the_device_as_new),
		TEST(sessions_leave_no_descriptors_behind),
		TEST(destroying_a_served_device_ends_the_session),
		TEST(a_connection_is_closed_and_not_reset),
		TEST(a_socket_left_behind_is_replaced_and_a_live_one_is_not),
		TEST(without_descriptors_the_listener_rests),
		TEST(messages_may_come_byte_by_byte),
		TEST(descriptors_go_to_the_message_they_came_with),
	};
	int failed;

	if (client_start())
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
