/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device offered to QEMU: a unix socket that speaks vfio-user, and the device behind it.
 *
 * One client at a time; when it leaves, or misbehaves, the device is as after power-on and
 * the next one is welcome. All on the engine's thread, or while the engine does not run.
 */
#ifndef SKUAD_PCI_VFIO_USER_H
#define SKUAD_PCI_VFIO_USER_H

struct engine;
struct skua_dev;
struct skua_dev_config;
struct vfu;

/*
 * Create the device of @config on @engine and listen for its guest at @path; a socket that
 * nobody listens on any more is replaced. @path may be NULL: then only vfu_serve() brings a
 * client. NULL with errno set, and the cause in one line of the log.
 */
struct vfu *vfu_create(struct engine *engine, const char *path,
		       const struct skua_dev_config *config);

/* Ends the connections of clients, who find that at once. Nobody is served until the engine runs again. */
void vfu_disconnect(struct vfu *v);

/*
 * Ends the client's connection, removes the socket, destroys the device. It may wait a second for each of device and
 * link, if what a client or a peer has sent is slow to close.
 */
void vfu_destroy(struct vfu *v);

/* Serve the client on the connected socket @fd, which is taken over; it is refused if there
 * is one already. */
void vfu_serve(struct vfu *v, int fd);

struct skua_dev *vfu_dev(struct vfu *v);

/* Each connection is shown to @keep from now on, which may keep a copy of it. Before engines run. */
void vfu_show_connections(void (*keep)(int fd));

#endif /* SKUAD_PCI_VFIO_USER_H */
