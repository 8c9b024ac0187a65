/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The other end of the control socket: requests and answers, a line each. Where the path is a
 * character device, it is a guest's port to that socket: one user at a time, and no descriptors.
 */
#ifndef SKUAD_CTL_CLIENT_H
#define SKUAD_CTL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;

struct ctl_client {
	int fd;
	bool port;
	char *buf;		/* what came behind the last line that was taken */
	size_t len, room;
};

/* False with errno set. */
bool ctl_client_connect(struct ctl_client *c, const char *path);
void ctl_client_close(struct ctl_client *c);

/* Sends @request, and @pass_fd with it unless that is -1. False with errno set (EOPNOTSUPP: no
 * descriptor can go this way). */
bool ctl_client_send(struct ctl_client *c, struct json_object *request, int pass_fd);

/* Waits for a line, an object that the caller puts. NULL with errno set: ECONNRESET if the
 * other end is gone, EBADMSG if it is no such object. */
struct json_object *ctl_client_receive(struct ctl_client *c);

#endif /* SKUAD_CTL_CLIENT_H */
