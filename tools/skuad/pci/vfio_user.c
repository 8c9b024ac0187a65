// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The server of one device: its socket, and its client's coming and going. What the client
 * says is session.c's.
 *
 * Descriptors watched, all on the engine's thread: the socket that listens; the connection;
 * that of a second client, until it has said VERSION and heard that the device is busy (QEMU
 * aborts if it is only cut off); and the guard's eventfd that tells of guest memory which is
 * gone. The device may have touched that memory on any thread; it reads zeros until the
 * session has ended. And an eventfd of our own, which is ready while there is work that must not wait for the client:
 * what was received and does not fit in a step, and regions to be freed.
 *
 * What clients hand over is given back by the closer. While that is full, sockets are not looked at.
 */
#include "pci/vfio_user.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/closer.h"
#include "base/engine.h"
#include "base/log.h"
#include "base/socket.h"
#include "nic/dev.h"
#include "pci/session.h"

/* Between looks at a socket by which doorbells flood in. It holds some 270 of them; QEMU sends as many in 500 us. */
#define REST_NS		100000
/* Of a connection whose closer is full. */
#define FULL_REST_NS	1000000
/* Of a listener that cannot accept. */
#define LISTENER_REST_NS	1000000000

/* What comes of one recvmsg(), what the channel had before, the files of a client that leaves, and sockets. */
#define CLOSER_ROOM	(CLOSER_MSG_FDS + 2 * VFIO_USER_MAX_FDS + DMA_MAX_FILES + 8)

struct vfu {
	struct engine *engine;
	struct skua_dev *dev;
	struct function fn;
	struct closer *closer;
	struct dma dma;
	struct session session;
	struct engine_fd listener;	/* fd -1: none */
	struct engine_fd conn;		/* fd -1: no client */
	struct engine_fd refused;	/* fd -1: no second client */
	struct engine_fd guard;
	struct engine_fd again;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t path_dev;			/* the socket that is ours, if it is still there */
	ino_t path_ino;
};

#define vfu_of(efd, member) \
	((struct vfu *)(void *)((char *)(efd) - offsetof(struct vfu, member)))

static void (*keep_connection)(int fd);	/* NULL: nobody wants to */

static const char *name(const struct vfu *v)
{
	return skua_dev_name(v->dev);
}

static void raise_irq(void *host, unsigned int vector)
{
	struct vfu *v = host;

	function_raise(&v->fn, vector);
}

static const struct skua_host_ops host_ops = {
	.raise_irq = raise_irq,
};

/* @fault: what the client did wrong, or "". */
static void disconnect(struct vfu *v, const char *fault)
{
	if (fault[0])
		log_err(name(v), "connection ended: %s", fault);
	else
		log_info(name(v), "the client has disconnected");
	engine_fd_del(v->engine, &v->conn);
	v->conn.fd = -1;
	session_end(&v->session);
	eventfd_write(v->again.fd, 1);
}

static void serve_client(struct vfu *v)
{
	if (!session_serve(&v->session))
		disconnect(v, v->session.fault);
	else if (session_is_busy(&v->session))
		eventfd_write(v->again.fd, 1);
}

static void conn_ready(struct engine_fd *efd)
{
	struct vfu *v = vfu_of(efd, conn);

	if (closer_is_full(v->closer)) {
		engine_fd_rest(v->engine, efd, FULL_REST_NS);
		return;
	}
	serve_client(v);
	if (v->conn.fd >= 0 && skua_dev_is_flooded(v->dev))
		engine_fd_rest(v->engine, &v->conn, REST_NS);
}

static void again_ready(struct engine_fd *efd)
{
	struct vfu *v = vfu_of(efd, again);
	eventfd_t n;

	eventfd_read(efd->fd, &n);
	if (v->conn.fd >= 0 && session_is_busy(&v->session))
		serve_client(v);
	if (dma_run(&v->dma))
		eventfd_write(efd->fd, 1);
}

static void guard_ready(struct engine_fd *efd)
{
	struct vfu *v = vfu_of(efd, guard);

	if (mem_guard_tripped(&v->dma.guard) && v->conn.fd >= 0)
		disconnect(v, "guest memory is gone: its file was truncated, or has no pages left");
}

static void refused_close(struct vfu *v)
{
	if (v->refused.fd < 0)
		return;
	engine_fd_del(v->engine, &v->refused);
	closer_connection(v->closer, v->refused.fd);
	v->refused.fd = -1;
}

/* The message stays where it is. Else the kernel would close its descriptors here. */
static void refused_ready(struct engine_fd *efd)
{
	struct vfu *v = vfu_of(efd, refused);
	struct vfio_user_hdr hdr;

	if (recv(efd->fd, &hdr, sizeof(hdr), MSG_PEEK | MSG_DONTWAIT) == sizeof(hdr)) {
		hdr.size = sizeof(hdr);
		hdr.flags = VFIO_USER_F_REPLY | VFIO_USER_F_ERROR;
		hdr.error = EBUSY;
		if (send(efd->fd, &hdr, sizeof(hdr), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			log_debug(name(v), "the second client has disconnected");
	}
	refused_close(v);
}

/* One more at a time: who comes later takes the place of who came earlier. */
static void refuse(struct vfu *v, int fd)
{
	log_err(name(v), "a second client was refused: one is connected already");
	refused_close(v);
	v->refused.fd = fd;
	if (engine_fd_add(v->engine, &v->refused)) {
		v->refused.fd = -1;
		closer_connection(v->closer, fd);
	}
}

void vfu_serve(struct vfu *v, int fd)
{
	int ret;

	if (v->conn.fd >= 0) {
		refuse(v, fd);
		return;
	}
	v->conn.fd = fd;
	ret = engine_fd_add(v->engine, &v->conn);
	if (ret) {
		log_err(name(v), "a client cannot be served: %s", strerror(-ret));
		v->conn.fd = -1;
		closer_connection(v->closer, fd);
		return;
	}
	session_begin(&v->session, &v->fn, &v->dma, fd);
	if (keep_connection)
		keep_connection(fd);
	log_info(name(v), "a client has connected");
}

static void listener_ready(struct engine_fd *efd)
{
	struct vfu *v = vfu_of(efd, listener);
	int fd;

	if (dma_is_clearing(&v->dma))
		return;
	if (closer_is_full(v->closer)) {
		log_err(name(v), "a client has to wait: what an earlier one handed over cannot be closed yet");
		engine_fd_rest(v->engine, efd, LISTENER_REST_NS);
		return;
	}
	fd = accept4(efd->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		vfu_serve(v, fd);
	} else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
		/* It stays readable: do not spin while there are no descriptors left. */
		log_err(name(v), "a client cannot be accepted: %s", strerror(errno));
		engine_fd_rest(v->engine, efd, LISTENER_REST_NS);
	}
}

static int listen_at(struct vfu *v, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, ret;

	if (!path[0] || strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	ret = socket_bind(fd, (const struct sockaddr *)&addr, sizeof(addr));
	if (ret)
		goto close_fd;
	if (listen(fd, 8) || stat(path, &st)) {
		ret = -errno;
		goto remove;
	}
	v->listener.fd = fd;
	ret = engine_fd_add(v->engine, &v->listener);
	if (ret)
		goto remove;
	strcpy(v->path, path);
	v->path_dev = st.st_dev;
	v->path_ino = st.st_ino;
	return 0;

remove:
	v->listener.fd = -1;
	unlink(path);
close_fd:
	close(fd);
	return ret;
}

static void unlisten(struct vfu *v)
{
	struct stat st;

	if (v->listener.fd < 0)
		return;
	engine_fd_del(v->engine, &v->listener);
	closer_connection(v->closer, v->listener.fd);
	if (!stat(v->path, &st) && st.st_dev == v->path_dev && st.st_ino == v->path_ino)
		unlink(v->path);
}

struct vfu *vfu_create(struct engine *engine, const char *path,
		       const struct skua_dev_config *config)
{
	struct vfu *v = calloc(1, sizeof(*v));
	int ret;

	if (!v) {
		log_err(config->name, "out of memory");
		return NULL;
	}
	v->engine = engine;
	v->listener = (struct engine_fd){ .fd = -1, .ready = listener_ready };
	v->conn = (struct engine_fd){ .fd = -1, .ready = conn_ready };
	v->refused = (struct engine_fd){ .fd = -1, .ready = refused_ready };
	function_init(&v->fn);
	v->dev = skua_dev_create(engine, config, &host_ops, v);
	if (!v->dev) {
		ret = -errno;
		log_err(config->name, "the device cannot be created: %s", strerror(-ret));
		goto destroy_fn;
	}
	v->fn.dev = v->dev;
	v->closer = closer_create(CLOSER_ROOM);
	ret = -ENOMEM;
	if (!v->closer) {
		log_err(config->name, "the device cannot be created: %s", strerror(-ret));
		goto destroy_dev;
	}
	ret = dma_init(&v->dma, v->dev, v->closer);
	if (ret) {
		log_err(config->name, "the device cannot be created: %s", strerror(-ret));
		goto destroy_closer;
	}
	v->guard = (struct engine_fd){ .fd = v->dma.guard.fd, .ready = guard_ready };
	ret = engine_fd_add(engine, &v->guard);
	if (ret) {
		log_err(config->name, "the device cannot be created: %s", strerror(-ret));
		goto destroy_dma;
	}
	v->again = (struct engine_fd){ .fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .ready = again_ready };
	ret = v->again.fd < 0 ? -errno : engine_fd_add(engine, &v->again);
	if (ret) {
		log_err(config->name, "the device cannot be created: %s", strerror(-ret));
		goto close_again;
	}
	ret = path ? listen_at(v, path) : 0;
	if (ret) {
		log_err(config->name, "socket %s: %s", path, strerror(-ret));
		goto del_again;
	}
	return v;

del_again:
	engine_fd_del(engine, &v->again);
close_again:
	if (v->again.fd >= 0)
		close(v->again.fd);
	engine_fd_del(engine, &v->guard);
destroy_dma:
	dma_destroy(&v->dma);
destroy_closer:
	closer_destroy(v->closer);
destroy_dev:
	skua_dev_destroy(v->dev);
destroy_fn:
	function_destroy(&v->fn);
	free(v);
	errno = -ret;
	return NULL;
}

void vfu_disconnect(struct vfu *v)
{
	refused_close(v);
	if (v->conn.fd >= 0) {
		session_finish(&v->session);
		disconnect(v, "");
	}
}

void vfu_destroy(struct vfu *v)
{
	vfu_disconnect(v);
	unlisten(v);
	engine_fd_del(v->engine, &v->again);
	close(v->again.fd);
	engine_fd_del(v->engine, &v->guard);
	dma_destroy(&v->dma);
	closer_destroy(v->closer);
	skua_dev_destroy(v->dev);
	function_destroy(&v->fn);
	free(v);
}

void vfu_show_connections(void (*keep)(int fd))
{
	keep_connection = keep;
}

struct skua_dev *vfu_dev(struct vfu *v)
{
	return v->dev;
}
