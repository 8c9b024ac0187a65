// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Theory of operation
 *
 * One table has a row for each command: what its body may measure, how many descriptors may
 * come with it, and who serves it. Three kinds of answer:
 *
 * - what a sound client may ask and cannot have gets an error reply (a command that is not
 *   known: ENOTSUP; an index that is not there; a region over another);
 * - what no sound client sends is a fault: an error reply, if one is due, and then the end of
 *   the session, with one line in the log. There is no telling what else such a client
 *   believes about the device;
 * - the rest is done.
 *
 * Replies never wait: a client that leaves no room for one has faulted. Doorbells take the
 * same way as everything: header check, table row, bounds, device; the system call that
 * brought them costs many times that.
 *
 * The engine has other guests to serve, too. So a step ends after some messages, and a DMA_UNMAP of many regions takes
 * as many steps as it needs; what comes behind it waits.
 */
#include "pci/session.h"

#include <errno.h>
#include <linux/vfio.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/closer.h"
#include "base/log.h"
#include "nic/dev.h"

/* Up to MSI-X: if QEMU finds an error interrupt that has no vector, it warns of it. */
#define NUM_IRQS	(VFIO_PCI_MSIX_IRQ_INDEX + 1)

#define STEP_MESSAGES	64

#define STR_(x)	#x
#define STR(x)	STR_(x)

static const char capabilities[] =
	"{\"capabilities\":{"
	"\"max_msg_fds\":" STR(VFIO_USER_MAX_FDS) ","
	"\"max_data_xfer_size\":" STR(VFIO_USER_MAX_DATA) ","
	"\"max_dma_maps\":" STR(VFIO_USER_MAX_DMA_MAPS) ","
	"\"pgsizes\":" STR(VFIO_USER_PAGE_SIZE) "}}";

/* A reply in the making: the header, then what the command's function appends. */
struct reply {
	_Alignas(8) uint8_t buf[VFIO_USER_MAX_MSG];
	size_t len;
};

static void *reply_append(struct reply *r, const void *data, size_t len)
{
	void *p = r->buf + r->len;

	if (data)
		memcpy(p, data, len);
	r->len += len;
	return p;
}

/* Notes why the session must end; to be returned by whoever serves the command. */
__attribute__((format(printf, 2, 3)))
static int fault(struct session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->fault, sizeof(s->fault), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

#define NOT_SHARED \
	"guest memory is not shared with skuad " \
	"(use a memory-backend-memfd,share=on for the machine's memory)"

static int serve_version(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	struct vfio_user_version v;

	memcpy(&v, msg->body, sizeof(v));
	if (s->greeted)
		return fault(s, "VERSION came twice");
	if (v.major != VFIO_USER_MAJOR)
		return fault(s, "version %u.%u is not known", v.major, v.minor);
	/* The client's own limits bind nothing here: no reply is larger than what it asks for,
	 * and none carries descriptors. */
	if (msg->len > sizeof(v) && msg->body[msg->len - 1])
		return fault(s, "VERSION: capabilities without an end");
	s->greeted = true;
	v.minor = VFIO_USER_MINOR;
	reply_append(r, &v, sizeof(v));
	reply_append(r, capabilities, sizeof(capabilities));
	return 0;
}

static int serve_dma_map(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	struct vfio_user_dma_map map;
	int none = -1, ret;
	const char *why;

	(void)r;
	memcpy(&map, msg->body, sizeof(map));
	if (map.argsz < sizeof(map))
		return fault(s, "DMA_MAP: argsz %u", map.argsz);
	ret = dma_map(s->dma, &map, msg->nfds ? &msg->fds[0] : &none, &why);
	if (why)
		return fault(s, "guest memory 0x%llx+0x%llx: %s", (unsigned long long)map.iova,
			     (unsigned long long)map.size, why);
	return ret;
}

/* -EAGAIN: there is more to unmap, and no answer yet. */
static int unmap_step(struct session *s, struct reply *r)
{
	int ret = dma_unmap(s->dma, s->unmap.first, s->unmap.last, &s->unmap.done);

	s->unmap.busy = ret == -EAGAIN;
	s->unmap.body.size = s->unmap.done;
	reply_append(r, &s->unmap.body, sizeof(s->unmap.body));
	return ret;
}

static int serve_dma_unmap(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	struct vfio_user_dma_unmap unmap;

	memcpy(&unmap, msg->body, sizeof(unmap));
	if (unmap.argsz < sizeof(unmap))
		return fault(s, "DMA_UNMAP: argsz %u", unmap.argsz);
	if (unmap.flags & ~VFIO_DMA_UNMAP_FLAG_ALL)
		return -ENOTSUP;	/* there is no dirty log */
	if (unmap.flags ? unmap.iova || unmap.size : !unmap.size)
		return -EINVAL;
	s->unmap.hdr = msg->hdr;
	s->unmap.body = unmap;
	s->unmap.first = unmap.iova;
	s->unmap.last = unmap.iova + (unmap.size - 1);	/* with FLAG_ALL, all */
	s->unmap.done = 0;
	return unmap_step(s, r);
}

static int serve_get_info(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	struct vfio_user_device_info info;

	memcpy(&info, msg->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return fault(s, "DEVICE_GET_INFO: argsz %u", info.argsz);
	/* QEMU asks after it has described its memory, and gives up in good order if this fails:
	 * its user learns of it at the start. */
	if (dma_not_shared(s->dma)) {
		log_err(skua_dev_name(s->fn->dev), NOT_SHARED);
		return -ENODEV;
	}
	info = (struct vfio_user_device_info){
		.argsz = sizeof(info),
		.flags = VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI,
		.num_regions = FUNCTION_NUM_REGIONS,
		.num_irqs = NUM_IRQS,
	};
	reply_append(r, &info, sizeof(info));
	return 0;
}

static int serve_get_region_info(struct session *s, const struct channel_msg *msg,
				 struct reply *r)
{
	struct vfio_user_region_info info;
	uint64_t size;

	memcpy(&info, msg->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return fault(s, "DEVICE_GET_REGION_INFO: argsz %u", info.argsz);
	if (info.index >= FUNCTION_NUM_REGIONS)
		return -EINVAL;
	size = function_region_size(info.index);
	/* Never VFIO_REGION_INFO_FLAG_MMAP: one such region, and QEMU posts no more writes. */
	info = (struct vfio_user_region_info){
		.argsz = sizeof(info),
		.flags = size ? VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE : 0,
		.index = info.index,
		.size = size,
	};
	reply_append(r, &info, sizeof(info));
	return 0;
}

static int serve_get_irq_info(struct session *s, const struct channel_msg *msg,
			      struct reply *r)
{
	struct vfio_user_irq_info info;
	bool msix;

	memcpy(&info, msg->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return fault(s, "DEVICE_GET_IRQ_INFO: argsz %u", info.argsz);
	if (info.index >= NUM_IRQS)
		return -EINVAL;
	msix = info.index == VFIO_PCI_MSIX_IRQ_INDEX;
	info = (struct vfio_user_irq_info){
		.argsz = sizeof(info),
		.flags = msix ? VFIO_IRQ_INFO_EVENTFD : 0,
		.index = info.index,
		.count = msix ? SKUA_NUM_VECTORS : 0,
	};
	reply_append(r, &info, sizeof(info));
	return 0;
}

/* The client triggers the vectors itself, for a loop-back test, or with none in the set lets
 * go of all of them. */
static int set_irqs_none(struct session *s, const struct vfio_user_irq_set *set)
{
	struct msix *m = &s->fn->msix;
	uint32_t i;

	if (!set->count)
		return msix_set(m, 0, SKUA_NUM_VECTORS, NULL);
	for (i = 0; i < set->count; i++)
		msix_raise(m, set->start + i);
	return 0;
}

static int set_irqs_eventfd(struct session *s, const struct vfio_user_irq_set *set,
			    const struct channel_msg *msg)
{
	struct msix *m = &s->fn->msix;

	if (!msg->nfds)
		return msix_set(m, set->start, set->count, NULL);
	if (msg->nfds != set->count)
		return fault(s, "SET_IRQS: %u descriptors for %u vectors", msg->nfds,
			     set->count);
	if (msix_set(m, set->start, set->count, msg->fds))
		return fault(s, "SET_IRQS: a descriptor is not an eventfd");
	return 0;
}

static int serve_set_irqs(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	const uint32_t eventfd = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	const uint32_t none = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
	struct vfio_user_irq_set set;

	(void)r;
	memcpy(&set, msg->body, sizeof(set));
	if (set.argsz < sizeof(set))
		return fault(s, "SET_IRQS: argsz %u", set.argsz);
	if (set.index >= NUM_IRQS)
		return fault(s, "SET_IRQS: index %u", set.index);
	if (set.flags != eventfd && msg->nfds)
		return fault(s, "SET_IRQS: %u descriptors are not expected", msg->nfds);
	if (set.index != VFIO_PCI_MSIX_IRQ_INDEX)
		return -ENOTSUP;
	if (set.start > SKUA_NUM_VECTORS || set.count > SKUA_NUM_VECTORS - set.start)
		return fault(s, "SET_IRQS: vectors %u+%u of %u", set.start, set.count,
			     SKUA_NUM_VECTORS);
	if (set.flags == eventfd)
		return set_irqs_eventfd(s, &set, msg);
	if (set.flags == none)
		return set_irqs_none(s, &set);
	return -ENOTSUP;
}

static bool region_access_ok(const struct vfio_user_region_access *a)
{
	uint64_t size = function_region_size(a->region);

	if (!a->count || a->count > VFIO_USER_MAX_DATA || a->offset > size ||
	    a->count > size - a->offset)
		return false;
	return a->region == VFIO_PCI_CONFIG_REGION_INDEX || a->count == 4 || a->count == 8 ||
	       a->count == 1 || a->count == 2;
}

static int access_fault(struct session *s, const char *what,
			const struct vfio_user_region_access *a)
{
	return fault(s, "%s: region %u, 0x%llx+%u", what, a->region,
		     (unsigned long long)a->offset, a->count);
}

static int serve_region_read(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	struct vfio_user_region_access a;

	memcpy(&a, msg->body, sizeof(a));
	if (!region_access_ok(&a))
		return access_fault(s, "REGION_READ", &a);
	reply_append(r, &a, sizeof(a));
	function_read(s->fn, a.region, a.offset, reply_append(r, NULL, a.count), a.count);
	return 0;
}

static int serve_region_write(struct session *s, const struct channel_msg *msg,
			      struct reply *r)
{
	struct vfio_user_region_access a;
	const uint8_t *data = msg->body + sizeof(a);
	bool bus_master = s->fn->bus_master;
	uint64_t word;

	memcpy(&a, msg->body, sizeof(a));
	if (!region_access_ok(&a))
		return access_fault(s, "REGION_WRITE", &a);
	if (msg->len != sizeof(a) + a.count)
		return fault(s, "REGION_WRITE: %zu bytes of data for %u", msg->len - sizeof(a),
			     a.count);
	if (a.count <= sizeof(word)) {	/* aligned, for the device */
		memcpy(&word, data, a.count);
		data = (const uint8_t *)&word;
	}
	function_write(s->fn, a.region, a.offset, data, a.count);
	if (s->fn->bus_master && !bus_master && dma_not_shared(s->dma))
		return fault(s, NOT_SHARED);
	reply_append(r, &a, sizeof(a));
	return 0;
}

static int serve_reset(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	(void)msg;
	(void)r;
	function_reset(s->fn);
	return 0;
}

static const struct command {
	const char *name;	/* NULL: not known */
	int (*serve)(struct session *s, const struct channel_msg *msg, struct reply *r);
	size_t min, max;	/* of the body */
	unsigned int max_fds;
} commands[] = {
	[VFIO_USER_VERSION] = { "VERSION", serve_version,
		sizeof(struct vfio_user_version), VFIO_USER_MAX_DATA, 0 },
	[VFIO_USER_DMA_MAP] = { "DMA_MAP", serve_dma_map,
		sizeof(struct vfio_user_dma_map), sizeof(struct vfio_user_dma_map), 1 },
	[VFIO_USER_DMA_UNMAP] = { "DMA_UNMAP", serve_dma_unmap,
		sizeof(struct vfio_user_dma_unmap), sizeof(struct vfio_user_dma_unmap), 0 },
	[VFIO_USER_DEVICE_GET_INFO] = { "DEVICE_GET_INFO", serve_get_info,
		sizeof(struct vfio_user_device_info), sizeof(struct vfio_user_device_info), 0 },
	[VFIO_USER_DEVICE_GET_REGION_INFO] = { "DEVICE_GET_REGION_INFO", serve_get_region_info,
		sizeof(struct vfio_user_region_info), sizeof(struct vfio_user_region_info), 0 },
	[VFIO_USER_DEVICE_GET_IRQ_INFO] = { "DEVICE_GET_IRQ_INFO", serve_get_irq_info,
		sizeof(struct vfio_user_irq_info), sizeof(struct vfio_user_irq_info), 0 },
	[VFIO_USER_DEVICE_SET_IRQS] = { "SET_IRQS", serve_set_irqs,
		sizeof(struct vfio_user_irq_set),
		sizeof(struct vfio_user_irq_set) + SKUA_NUM_VECTORS, VFIO_USER_MAX_FDS },
	[VFIO_USER_REGION_READ] = { "REGION_READ", serve_region_read,
		sizeof(struct vfio_user_region_access),
		sizeof(struct vfio_user_region_access), 0 },
	[VFIO_USER_REGION_WRITE] = { "REGION_WRITE", serve_region_write,
		sizeof(struct vfio_user_region_access) + 1,
		sizeof(struct vfio_user_region_access) + VFIO_USER_MAX_DATA, 0 },
	[VFIO_USER_DEVICE_RESET] = { "DEVICE_RESET", serve_reset, 0, 0, 0 },
};

/* Serves one message, with what it appends to the reply; 0 or a negative errno. */
static int serve(struct session *s, const struct channel_msg *msg, struct reply *r)
{
	const struct command *c;

	if (msg->hdr.flags & ~VFIO_USER_F_NO_REPLY)
		return fault(s, "command %u: flags 0x%x", msg->hdr.command, msg->hdr.flags);
	if (!s->greeted && msg->hdr.command != VFIO_USER_VERSION)
		return fault(s, "command %u came before VERSION", msg->hdr.command);
	c = msg->hdr.command < sizeof(commands) / sizeof(commands[0]) ?
		    &commands[msg->hdr.command] : &commands[0];
	if (!c->name)
		return -ENOTSUP;
	if (msg->len < c->min || msg->len > c->max)
		return fault(s, "%s: a message of %u bytes", c->name, msg->hdr.size);
	if (msg->nfds > c->max_fds)
		return fault(s, "%s: %u descriptors are not expected", c->name, msg->nfds);
	return c->serve(s, msg, r);
}

static int send_reply(struct session *s, const struct vfio_user_hdr *to, struct reply *r, int ret)
{
	struct vfio_user_hdr *hdr = (struct vfio_user_hdr *)r->buf;

	if (ret)
		r->len = sizeof(*hdr);
	hdr->id = to->id;
	hdr->command = to->command;
	hdr->size = r->len;
	hdr->flags = VFIO_USER_F_REPLY | (ret ? VFIO_USER_F_ERROR : 0);
	hdr->error = -ret;
	return channel_send(&s->channel, r->buf, r->len);
}

/* @ret: what became of it. */
static void reply(struct session *s, const struct vfio_user_hdr *to, struct reply *r, int ret)
{
	if (to->flags & VFIO_USER_F_NO_REPLY || s->unmap.busy)
		return;
	ret = send_reply(s, to, r, ret);
	if (!ret || s->fault[0])
		return;
	if (ret == -EAGAIN)
		fault(s, "the client does not read its replies");
	else if (ret != -EPIPE && ret != -ECONNRESET)	/* else it left: soon seen */
		fault(s, "a reply cannot be sent: %s", strerror(-ret));
}

static void serve_and_reply(struct session *s, const struct channel_msg *msg)
{
	struct reply r;

	r.len = sizeof(struct vfio_user_hdr);
	reply(s, &msg->hdr, &r, serve(s, msg, &r));
}

static void go_on_unmapping(struct session *s)
{
	struct reply r;

	r.len = sizeof(struct vfio_user_hdr);
	reply(s, &s->unmap.hdr, &r, unmap_step(s, &r));
}

void session_begin(struct session *s, struct function *fn, struct dma *dma, int fd)
{
	channel_open(&s->channel, fd, dma->closer);
	s->fn = fn;
	s->dma = dma;
	s->greeted = false;
	s->left = false;
	s->unmap.busy = false;
	s->fault[0] = '\0';
}

bool session_serve(struct session *s)
{
	struct channel_msg msg;
	const char *why = NULL;
	int ret = 1;

	if (s->unmap.busy) {
		go_on_unmapping(s);
		return !s->fault[0];
	}
	if (!s->left)
		ret = channel_receive(&s->channel, &why);
	s->left = false;
	for (unsigned int i = 0; ret > 0 && !session_is_busy(s); i++) {
		ret = channel_next(&s->channel, &msg, &why);
		if (ret <= 0)
			break;
		serve_and_reply(s, &msg);
		if (s->fault[0])
			return false;
		s->left = s->unmap.busy || i == STEP_MESSAGES - 1;
	}
	if (ret < 0 && why)
		fault(s, "%s", why);
	return ret >= 0;
}

void session_finish(struct session *s)
{
	channel_stop(&s->channel);
	while (!closer_is_full(s->dma->closer) && session_serve(s))
		;
}

void session_end(struct session *s)
{
	channel_close(&s->channel);
	function_reset(s->fn);
	dma_clear(s->dma);
	msix_set(&s->fn->msix, 0, SKUA_NUM_VECTORS, NULL);
}
