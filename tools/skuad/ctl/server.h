/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket: what skuactl talks to. Served by one thread that is not an engine's.
 */
#ifndef SKUAD_CTL_SERVER_H
#define SKUAD_CTL_SERVER_H

struct ctl;
struct engine;
struct skua_dev;

#define CTL_DEFAULT_PATH	"/run/skuad.sock"
#define CTL_MAX_LINE		4096	/* bytes of a request */

struct ctl_device {
	const char *name;
	struct engine *engine;
	struct skua_dev *dev;
};

/*
 * Listen at @path, for the owner only; a socket that nobody listens on any more is replaced.
 * @devices stay the caller's, and must outlive it. NULL with errno set (EADDRINUSE: another
 * process listens there).
 */
struct ctl *ctl_create(const char *path, const struct ctl_device *devices, unsigned int n);
/* Ends all captures and connections, and removes the socket. */
void ctl_destroy(struct ctl *ctl);

/* A descriptor that is readable when ctl_serve() has something to do. */
int ctl_fd(const struct ctl *ctl);
/* Answers what there is, without waiting for any client. */
void ctl_serve(struct ctl *ctl);

#endif /* SKUAD_CTL_SERVER_H */
