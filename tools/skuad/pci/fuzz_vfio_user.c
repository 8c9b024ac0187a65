// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One connection's bytes, for libFuzzer (-DSKUA_LIBFUZZER -fsanitize=fuzzer); without it, a
 * program that plays the files it is given.
 *
 * An input is a sequence of sends: a byte that says which descriptors come with it, a byte
 * that says how long it is, the bytes. VERSION was agreed before, unless the first byte of
 * the input is odd.
 */
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"
#include "pci/double.h"
#include "pci/vfio_user.h"
#include "pci/vfio_user_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_fd, event_fd, pipe_fds[2];

static void send_with(int c, const uint8_t *data, size_t len, const int *fds, unsigned int nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(20 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *cm = &control.align;

		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	if (sendmsg(c, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;		/* the server has had enough */
}

static void greet(int c)
{
	struct {
		struct vfio_user_hdr hdr;
		struct vfio_user_version v;
	} m = { { .command = VFIO_USER_VERSION, .size = sizeof(m) }, { 0, 0 } };

	send_with(c, (const uint8_t *)&m, sizeof(m), NULL, 0);
}

static void play(struct engine *engine, int c, const uint8_t *data, size_t size)
{
	while (size >= 2) {
		size_t len = data[1] < size - 2 ? data[1] : size - 2;
		int fds[20];
		unsigned int i, nfds = 0;

		for (i = 0; i < 20; i++)
			fds[i] = data[0] & 1 ? memory_fd : data[0] & 2 ? event_fd : pipe_fds[1];
		if (data[0] & 4)
			nfds = 1 + (data[0] >> 3) % 20;
		if (len)
			send_with(c, data + 2, len, fds, nfds);
		while (engine_step(engine))
			;
		data += 2 + len;
		size -= 2 + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skua_dev_config config = { .name = "fuzz", .link = "wire:fuzz" };
	struct engine *engine;
	struct vfu *v;
	int pair[2];

	if (!memory_fd) {
		log_set_level(LOG_LEVEL_ERR);
		memory_fd = memfd_create("guest", MFD_CLOEXEC);
		event_fd = eventfd(0, EFD_NONBLOCK);
		if (ftruncate(memory_fd, 1 << 16) || pipe(pipe_fds))
			abort();
	}
	if (!size || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 0;
	engine = engine_create(true);
	v = vfu_create(engine, NULL, &config);
	vfu_serve(v, pair[0]);
	if (!(data[0] & 1))
		greet(pair[1]);
	play(engine, pair[1], data + 1, size - 1);
	close(pair[1]);
	while (engine_step(engine))
		;
	vfu_destroy(v);
	engine_destroy(engine);
	return 0;
}

#ifndef SKUA_LIBFUZZER
int main(int argc, char **argv)
{
	static uint8_t buf[1 << 16];
	int i;

	for (i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");

		if (!f) {
			perror(argv[i]);
			return 1;
		}
		LLVMFuzzerTestOneInput(buf, fread(buf, 1, sizeof(buf), f));
		fclose(f);
	}
	return 0;
}
#endif
