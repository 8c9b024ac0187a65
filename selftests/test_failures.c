// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Allocations that fail, one after the other, in each verb and in what ethtool and ip do: it fails or
 * does without, and works the next time. Needs a kernel with fault injection (lab run --kernel debug).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dmabuf.h"
#include "kselftest_harness.h"
#include "pair.h"

#define MOST 3000	/* allocations of one step: more, and something repeats itself */
#define NETDEV "skua0"

/* What each step makes and works on. */
static struct side side;
static struct ibv_qp *qp, *ud;
static struct ibv_srq *srq;
static struct ibv_ah *ah;
static struct ibv_mw *mw;
static struct ibv_xrcd *xrcd;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr, *dm_mr, *dmabuf_mr;
static struct ibv_dm *dm;
static int dmabuf;
static struct ibv_comp_channel *channel;
static struct ibv_qp *loop, *raw, *target, *qp_more;	/* loop: connected with itself */
static struct ibv_srq *srq_more;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_flow *flow;
static struct ibv_cq_ex *tag_cq;
static struct ibv_mr *odp_mr;
static uint8_t *on_demand;

#define ON_DEMAND_SIZE	(64u << 10)

/* Of this thread. Open all the time, since opening allocates, too. */
static int nth_fd, netdev_fd;

static int fail_nth(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	return pwrite(nth_fd, text, (size_t)len, 0) == len ? 0 : -1;
}

/* What is left to be counted: 0 if the allocation failed. */
static int nth_left(void)
{
	char text[16] = "";

	return pread(nth_fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : -1;
}

static int set_knob(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY), ok = fd >= 0 && write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return ok ? 0 : -1;
}

static int do_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (struct ibv_device **d = list; d && *d && !context; d++)
		context = ibv_open_device(*d);
	if (list)
		ibv_free_device_list(list);
	return context ? ibv_close_device(context) : -1;
}

static int do_pd(void) { return (pd = ibv_alloc_pd(side.context)) ? 0 : -1; }
static void undo_pd(void) { ibv_dealloc_pd(pd); }
static int do_channel(void) { return (channel = ibv_create_comp_channel(side.context)) ? 0 : -1; }
static void undo_channel(void) { ibv_destroy_comp_channel(channel); }
static int do_cq(void) { return (cq = ibv_create_cq(side.context, 100, NULL, side.channel, 0)) ? 0 : -1; }
static void undo_cq(void) { ibv_destroy_cq(cq); }

static int do_mr(void)
{
	mr = ibv_reg_mr(side.pd, side.mem, 1 << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	return mr ? 0 : -1;
}

static void undo_mr(void) { ibv_dereg_mr(mr); }

static int do_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 100000 };

	return (dm = ibv_alloc_dm(side.context, &attr)) ? 0 : -1;
}

static void undo_dm(void) { ibv_free_dm(dm); }
static int do_dm_mr(void) { return (dm_mr = ibv_reg_dm_mr(side.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED)) ? 0 : -1; }
static void undo_dm_mr(void) { ibv_dereg_mr(dm_mr); }

static int do_use_dm(void)
{
	return ibv_memcpy_to_dm(dm, 0, side.mem, 100000) || ibv_memcpy_from_dm(side.mem, dm, 0, 100000);
}


static int do_dmabuf(void)
{
	return (dmabuf_mr = ibv_reg_dmabuf_mr(side.pd, 0, 1 << 20, 0, dmabuf, IBV_ACCESS_LOCAL_WRITE)) ? 0 : -1;
}

static void undo_dmabuf(void) { ibv_dereg_mr(dmabuf_mr); }

/* To other memory, and back. */
static int do_rereg(void)
{
	int err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, side.mem + 4096, 1 << 20, 0);

	return err ? err : ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, side.mem, 1 << 20, 0);
}

static int do_qp(void) { return (qp = side_create_qp(&side)) ? 0 : -1; }
static void undo_qp(void) { ibv_destroy_qp(qp); }

/* The transitions, each on a QP that is where they begin. */
static int do_connect(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int err = qp_to_init(qp, IBV_ACCESS_REMOTE_WRITE);

	err = err ? err : qp_to_rtr(qp, &side, &side, qp->qp_num);
	err = err ? err : qp_to_rts(qp, 10, 3, 3);
	if (!err)
		return ibv_modify_qp(qp, &reset, IBV_QP_STATE);
	/* Whatever it was: back to where the next one begins. */
	fail_nth(0);
	ibv_modify_qp(qp, &reset, IBV_QP_STATE);
	return err;
}

static int do_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 64, .max_sge = 2 } };

	return (srq = ibv_create_srq(side.pd, &attr)) ? 0 : -1;
}

static void undo_srq(void) { ibv_destroy_srq(srq); }

static int do_use_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) || ibv_query_srq(srq, &attr);
}

/* Each time between two sizes. */
static int do_resize_cq(void) { return ibv_resize_cq(side.cq, side.cq->cqe > 100 ? 64 : 256); }

static int do_resize_srq(void)
{
	static uint32_t size = 128;
	struct ibv_srq_attr attr = { .max_wr = size };

	size ^= 128 ^ 256;
	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int do_modify_cq(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 10, 10 } };

	return ibv_modify_cq(side.cq, &attr);
}

/* Of a QP in RTS. */
static int do_rate(void)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = 20000 };

	return ibv_modify_qp_rate_limit(loop, &attr);
}

/* One that has a counter set of its own as soon as it is in INIT: the test has asked for that. */
static int do_counted(void)
{
	if (!(qp_more = side_create_qp(&side)))
		return -1;
	if (!qp_to_init(qp_more, 0))
		return 0;
	fail_nth(0);
	ibv_destroy_qp(qp_more);
	return -1;
}

static void undo_qp_more(void) { ibv_destroy_qp(qp_more); }

/* The context again, by its descriptor, and objects of it by their handles: what another process would do. */
static int do_import(void)
{
	struct ibv_context *other = ibv_import_device(dup(side.context->cmd_fd));
	struct ibv_pd *other_pd;
	struct ibv_mr *other_mr;
	struct ibv_dm *other_dm;
	bool done;

	if (!other)
		return -1;
	other_pd = ibv_import_pd(other, side.pd->handle);
	other_mr = other_pd ? ibv_import_mr(other_pd, side.mr->handle) : NULL;
	other_dm = ibv_import_dm(other, dm->handle);
	done = other_pd && other_mr && other_dm;
	if (!done)
		fail_nth(0);
	if (other_mr)
		ibv_unimport_mr(other_mr);
	if (other_dm)
		ibv_unimport_dm(other_dm);
	if (other_pd)
		ibv_unimport_pd(other_pd);
	ibv_close_device(other);
	return done ? 0 : -1;
}

static int do_on_demand(void)
{
	odp_mr = ibv_reg_mr(side.pd, on_demand, ON_DEMAND_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	return odp_mr ? 0 : -1;
}

static void undo_on_demand(void) { ibv_dereg_mr(odp_mr); }

/* Pages that are not there come, while the program waits. */
static int do_prefetch(void)
{
	struct ibv_sge sge = { (uintptr_t)on_demand, ON_DEMAND_SIZE, odp_mr->lkey };

	madvise(on_demand, ON_DEMAND_SIZE, MADV_DONTNEED);
	return ibv_advise_mr(side.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int do_wq(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 64, .max_sge = 1, .pd = side.pd, .cq = side.cq,
	};

	return (wq = ibv_create_wq(side.context, &attr)) ? 0 : -1;
}

static void undo_wq(void) { ibv_destroy_wq(wq); }

static int do_use_wq(void)
{
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq_attr reset = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET };
	int err = ibv_modify_wq(wq, &ready);

	if (err)
		fail_nth(0);
	return ibv_modify_wq(wq, &reset) ?: err;
}

static int do_table(void)
{
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };

	return (table = ibv_create_rwq_ind_table(side.context, &attr)) ? 0 : -1;
}

static void undo_table(void) { ibv_destroy_rwq_ind_table(table); }

static int do_rss_qp(void)
{
	uint8_t key[40] = {};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = side.pd, .rwq_ind_tbl = table,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key, IBV_RX_HASH_SRC_IPV4 },
	};

	return (qp_more = ibv_create_qp_ex(side.context, &attr)) ? 0 : -1;
}

static int do_raw_qp(void) { return (raw = side_create_qp_of(&side, IBV_QPT_RAW_PACKET)) ? 0 : -1; }
static void undo_raw_qp(void) { ibv_destroy_qp(raw); }

static int do_flow(void)
{
	struct { struct ibv_flow_attr attr; struct ibv_flow_spec_eth eth; } rule = {
		{ .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
		{ IBV_FLOW_SPEC_ETH, sizeof(rule.eth), { .dst_mac = { 2, 0, 0, 0, 0, 9 } }, { .dst_mac = { 255 } } },
	};

	return (flow = ibv_create_flow(raw, &rule.attr)) ? 0 : -1;
}

static void undo_flow(void) { ibv_destroy_flow(flow); }

static int do_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 64, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = side.pd, .cq = side.cq,
		.xrcd = xrcd, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
					   IBV_SRQ_INIT_ATTR_CQ,
	};

	return (srq_more = ibv_create_srq_ex(side.context, &attr)) ? 0 : -1;
}

static void undo_srq_more(void) { ibv_destroy_srq(srq_more); }

static int do_tag_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 64, .max_sge = 1 }, .srq_type = IBV_SRQT_TM, .pd = side.pd,
		.cq = ibv_cq_ex_to_cq(tag_cq), .tm_cap = { .max_num_tags = 16, .max_ops = 16 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
	};

	return (srq_more = ibv_create_srq_ex(side.context, &attr)) ? 0 : -1;
}

static int do_initiator(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = side.pd, .send_cq = side.cq,
		.cap = { .max_send_wr = 16, .max_send_sge = 1 },
	};

	return (qp_more = ibv_create_qp_ex(side.context, &attr)) ? 0 : -1;
}

static int do_target(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};

	return (target = ibv_create_qp_ex(side.context, &attr)) ? 0 : -1;
}

static void undo_target(void) { ibv_destroy_qp(target); }

static int do_open_target(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = target->qp_num, .qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd,
	};

	return (qp_more = ibv_open_qp(side.context, &attr)) ? 0 : -1;
}

static int do_mw(void) { return (mw = ibv_alloc_mw(side.pd, IBV_MW_TYPE_1)) ? 0 : -1; }
static void undo_mw(void) { ibv_dealloc_mw(mw); }

static int do_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT,
	};

	return (xrcd = ibv_open_xrcd(side.context, &attr)) ? 0 : -1;
}

static void undo_xrcd(void) { ibv_close_xrcd(xrcd); }

static int do_ah(void)
{
	struct ibv_ah_attr attr = side_ah(&side, &side.gid);

	return (ah = ibv_create_ah(side.pd, &attr)) ? 0 : -1;
}

static void undo_ah(void) { ibv_destroy_ah(ah); }

/* To RTS and back. */
static int do_datagrams(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	int err = qp_ud_to_rts(ud, 1);

	if (!err)
		err = ibv_modify_qp(ud, &reset, IBV_QP_STATE);
	if (!err)
		return 0;
	fail_nth(0);
	ibv_modify_qp(ud, &reset, IBV_QP_STATE);
	return err;
}

static int do_join(void)
{
	static const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 4 } };

	/* Who could join can leave. */
	return ibv_attach_mcast(ud, &group, 0) || ibv_detach_mcast(ud, &group, 0);
}

static int do_query(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_device_attr device;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || ibv_query_port(side.context, 1, &port) ||
	       ibv_query_device(side.context, &device);
}

static int ask(unsigned long request, struct ifreq *ifr)
{
	strcpy(ifr->ifr_name, NETDEV);
	return ioctl(netdev_fd, request, ifr);
}

static int ask_ethtool(void *command)
{
	struct ifreq ifr = { .ifr_data = command };

	return ask(SIOCETHTOOL, &ifr);
}

/* Each time between two sizes. */
static int do_rings(void)
{
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };

	if (ask_ethtool(&ring))
		return -1;
	ring.cmd = ETHTOOL_SRINGPARAM;
	ring.tx_pending = ring.tx_pending == 512 ? 1024 : 512;
	ring.rx_pending = ring.rx_pending == 256 ? 512 : 256;
	return ask_ethtool(&ring);
}

static int do_channels(void)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };

	if (ask_ethtool(&channels))
		return -1;
	channels.cmd = ETHTOOL_SCHANNELS;
	channels.combined_count = channels.combined_count == 1 ? channels.max_combined : 1;
	return ask_ethtool(&channels);
}

/* The table that spreads frames: as the driver would have it. */
static int do_spread(void)
{
	struct ethtool_rxfh_indir table = { .cmd = ETHTOOL_SRXFHINDIR };

	return ask_ethtool(&table);
}

static int do_statistics(void)
{
	static struct { struct ethtool_stats head; uint64_t values[1024]; } stats = { .head = { .cmd = ETHTOOL_GSTATS } };

	return ask_ethtool(&stats);
}

static int do_mtu(void)
{
	struct ifreq ifr;

	if (ask(SIOCGIFMTU, &ifr))
		return -1;
	ifr.ifr_mtu = ifr.ifr_mtu == 1500 ? 4000 : 1500;
	return ask(SIOCSIFMTU, &ifr);
}

static int do_mac(void)
{
	struct ifreq ifr;

	return ask(SIOCGIFHWADDR, &ifr) || ask(SIOCSIFHWADDR, &ifr);
}

static int set_flag(short flag, bool on)
{
	struct ifreq ifr;

	if (ask(SIOCGIFFLAGS, &ifr))
		return -1;
	ifr.ifr_flags = (short)(on ? ifr.ifr_flags | flag : ifr.ifr_flags & ~flag);
	return ask(SIOCSIFFLAGS, &ifr);
}

static int do_listen_to_all(void) { return set_flag(IFF_PROMISC, true) || set_flag(IFF_PROMISC, false); }

static int do_down_and_up(void)
{
	int err = set_flag(IFF_UP, false) || set_flag(IFF_UP, true);

	if (!err)
		return 0;
	fail_nth(0);
	set_flag(IFF_UP, true);
	return err;
}

/* It is up, and finds the other NIC. */
static bool is_sound(void)
{
	return !system("ping -q -c 1 -w 20 192.0.2.2 >/dev/null");
}

struct step {
	const char *name;
	int (*run)(void);
	void (*undo)(void);
};

static const struct step verbs[] = {
	{ "open device", do_open, NULL },
	{ "alloc PD", do_pd, undo_pd },
	{ "create channel", do_channel, undo_channel },
	{ "create CQ", do_cq, undo_cq },
	{ "register MR", do_mr, undo_mr },
	{ "alloc DM", do_dm, undo_dm },
	{ "create QP", do_qp, undo_qp },
	{ "create SRQ", do_srq, undo_srq },
	{ "create AH", do_ah, undo_ah },
	{ "alloc MW", do_mw, undo_mw },
	{ "open XRC domain", do_xrcd, undo_xrcd },
	{ "register MR on demand", do_on_demand, undo_on_demand },
	{ "create WQ", do_wq, undo_wq },
	{ "create raw packet QP", do_raw_qp, undo_raw_qp },
	{ "create XRC initiator", do_initiator, undo_qp_more },
	{ "create SRQ with tags", do_tag_srq, undo_srq_more },
}, verbs_of_objects[] = {
	{ "modify QP", do_connect, NULL },
	{ "modify UD QP", do_datagrams, NULL },
	{ "modify and query SRQ", do_use_srq, NULL },
	{ "resize SRQ", do_resize_srq, NULL },
	{ "resize CQ", do_resize_cq, NULL },
	{ "attach and detach", do_join, NULL },
	{ "register MR of DM", do_dm_mr, undo_dm_mr },
	{ "copy DM", do_use_dm, NULL },
	{ "register MR anew", do_rereg, NULL },
	{ "register dma-buf", do_dmabuf, undo_dmabuf },
	{ "query", do_query, NULL },
	{ "import", do_import, NULL },
	{ "moderate CQ", do_modify_cq, NULL },
	{ "limit rate", do_rate, NULL },
	{ "prefetch", do_prefetch, NULL },
	{ "modify WQ", do_use_wq, NULL },
	{ "create table of WQs", do_table, undo_table },
	{ "create XRC SRQ", do_xrc_srq, undo_srq_more },
	{ "open XRC target", do_open_target, undo_qp_more },
}, rss_verbs[] = {
	{ "create QP with a table", do_rss_qp, undo_qp_more },
}, counter_verbs[] = {
	{ "bind counter set", do_counted, undo_qp_more },
}, driver_verbs[] = {
	/* Where its own allocations fail, the core of 6.12 keeps a reference to the domain for ever, or loses memory. */
	{ "create XRC target", do_target, undo_target },
	{ "create flow", do_flow, undo_flow },
}, netdev[] = {
	{ "sizes of rings", do_rings, NULL },
	{ "channels", do_channels, NULL },
	{ "spreading", do_spread, NULL },
	{ "statistics", do_statistics, NULL },
	{ "MTU", do_mtu, NULL },
	{ "MAC", do_mac, NULL },
	{ "promiscuous mode", do_listen_to_all, NULL },
	{ "down and up", do_down_and_up, NULL },
};

/*
 * One allocation of a step fails, then one that is @stride later, until it makes no more. Returns how many it made; or
 * -1: there was no end of them.
 */
static int fail_each(const struct step *step, int stride, int *err)
{
	for (int n = 1; n < MOST; n += stride) {
		int left;

		fail_nth(n);
		*err = step->run();
		left = nth_left();
		fail_nth(0);
		if (!*err && step->undo)
			step->undo();
		if (left > 0)
			return n - 1;
	}
	return -1;
}

/*
 * Under the slowest of kernels there are hundreds of attempts, which take minutes. @total grows by the allocations that
 * there were: without any, nothing was made to fail.
 */
#define FAIL_EACH(steps, stride, total) do {							\
	for (size_t i_ = 0; i_ < sizeof(steps) / sizeof((steps)[0]); i_++) {		\
		int err_, made_ = fail_each(&(steps)[i_], stride, &err_);		\
											\
		ASSERT_LE(0, made_);							\
		ASSERT_EQ(0, err_) {							\
			TH_LOG("%s fails without a fault", (steps)[i_].name);		\
		}									\
		TH_LOG("%s: %d allocations", (steps)[i_].name, made_);			\
		(total) += made_;							\
	}										\
} while (0)

/* What else the kernel allocates succeeds: only those of which skua_ib is among the callers may fail. */
static int fail_for_driver(const char *which)
{
	char path[64], start[32] = "", size[32] = "", end[32];
	const char *const names[][2] = { { "require-start", start }, { "require-end", end } };
	const int fds[] = {
		open("/sys/module/skua_ib/sections/.text", O_RDONLY), open("/sys/module/skua_ib/coresize", O_RDONLY),
	};
	bool done = read(fds[0], start, sizeof(start) - 1) > 0 && read(fds[1], size, sizeof(size) - 1) > 0;

	close(fds[0]);
	close(fds[1]);
	snprintf(end, sizeof(end), "0x%llx", strtoull(start, NULL, 0) + strtoull(size, NULL, 0));
	for (size_t i = 0; done && i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", which, names[i][0]);
		done = !set_knob(path, names[i][1]);
	}
	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/stacktrace-depth", which);
	return done && !set_knob(path, "32") ? 0 : -1;
}

/* failures.sh may have left a filter of callers. */
static int fail_for_all_callers(const char *which)
{
	static const char *const knobs[][2] = {
		{ "require-start", "0" }, { "require-end", "0xffffffffffffffff" }, { "reject-start", "0" },
		{ "reject-end", "0" },
	};
	char path[64];

	for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", which, knobs[i][0]);
		if (set_knob(path, knobs[i][1]))
			return -1;
	}
	return 0;
}

/* A network namespace has a /sys of its own, without what was mounted there. @order: of pages that may fail. */
static int set_up_failures(const char *order)
{
	if (mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) && errno != EBUSY)
		return -1;
	if (!nth_fd)
		nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	return nth_fd < 0 ||
	       set_knob("/sys/kernel/debug/failslab/ignore-gfp-wait", "0") ||
	       set_knob("/sys/kernel/debug/failslab/verbose", "0") ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "0") ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/min-order", order) ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/verbose", "0") ||
	       fail_for_all_callers("failslab") || fail_for_all_callers("fail_page_alloc");
}

/* Single pages, too: if the rest of the kernel did not get one, it would end the program. */
static int only_the_driver_fails(void)
{
	return fail_for_driver("failslab") || fail_for_driver("fail_page_alloc") ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/min-order", "0");
}

FIXTURE(failures) {};
FIXTURE_SETUP(failures) { }
FIXTURE_TEARDOWN(failures) { }

TEST_F_TIMEOUT(failures, every_allocation_of_every_verb, 1800)
{
	struct ibv_cq_init_attr_ex tag_cq_attr = {
		.cqe = 256, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	unsigned int total = 0;

	ASSERT_EQ(0, set_up_failures("1"));
	ASSERT_EQ(0, side_open(&side, "skua_0"));
	on_demand = mmap(NULL, ON_DEMAND_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, on_demand);
	ASSERT_NE(NULL, tag_cq = ibv_create_cq_ex(side.context, &tag_cq_attr));
	FAIL_EACH(verbs, 1, total);
	ASSERT_LT(sizeof(verbs) / sizeof(verbs[0]), total);
	ASSERT_EQ(0, only_the_driver_fails());
	total = 0;
	FAIL_EACH(verbs, 1, total);
	ASSERT_LT(0, total);
	ASSERT_EQ(0, set_up_failures("1"));
	ASSERT_EQ(0, do_qp());
	ASSERT_EQ(0, do_srq());
	ASSERT_EQ(0, do_dm());
	ASSERT_EQ(0, do_mr());
	ASSERT_LE(0, dmabuf = export_buffer(1 << 20, 0, 0));
	ASSERT_NE(NULL, ud = side_create_qp_of(&side, IBV_QPT_UD));
	ASSERT_NE(NULL, loop = side_create_qp(&side));
	ASSERT_EQ(0, qp_to_init(loop, 0));
	ASSERT_EQ(0, qp_to_rtr(loop, &side, &side, loop->qp_num));
	ASSERT_EQ(0, qp_to_rts(loop, 10, 3, 3));
	ASSERT_EQ(0, do_on_demand());
	ASSERT_EQ(0, do_wq());
	ASSERT_EQ(0, do_raw_qp());
	ASSERT_EQ(0, do_xrcd());
	ASSERT_EQ(0, do_target());
	total = 0;
	FAIL_EACH(verbs_of_objects, 1, total);
	ASSERT_LT(sizeof(verbs_of_objects) / sizeof(verbs_of_objects[0]), total);
	ASSERT_EQ(0, do_table());
	FAIL_EACH(rss_verbs, 1, total);
	ASSERT_EQ(0, system("rdma statistic qp set link skua_0/1 auto type on"));
	FAIL_EACH(counter_verbs, 1, total);
	ASSERT_EQ(0, system("rdma statistic qp set link skua_0/1 auto off"));
	undo_table();
	undo_target();
	ASSERT_EQ(0, only_the_driver_fails());
	total = 0;
	FAIL_EACH(driver_verbs, 1, total);
	ASSERT_LT(0, total);
	undo_xrcd();
	undo_raw_qp();
	undo_wq();
	undo_on_demand();
	ASSERT_EQ(0, ibv_destroy_qp(loop));
	ASSERT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(tag_cq)));
	ASSERT_EQ(0, ibv_destroy_qp(ud));
	close(dmabuf);
	ASSERT_TRUE(none_exported());
	undo_mr();
	undo_dm();
	undo_srq();
	undo_qp();
	side_close(&side);
}

/* After so many bytes, one allocation fails, whatever task makes it. */
static int fail_after(unsigned int bytes)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", bytes);
	return set_knob("/sys/kernel/debug/failslab/space", text) ||
	       set_knob("/sys/kernel/debug/failslab/times", "1") ||
	       set_knob("/sys/kernel/debug/failslab/probability", "100");
}

/* Has one failed? Then, and from now on, none does. */
static bool has_failed(void)
{
	char text[16] = "";
	int fd = open("/sys/kernel/debug/failslab/times", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	return !set_knob("/sys/kernel/debug/failslab/probability", "0") && n > 0 && !atoi(text);
}

/* A WRITE of pages that are not there. The driver brings them, in threads of the kernel. */
static enum ibv_wc_status write_absent(struct side s[2])
{
	struct ibv_sge sge = { (uintptr_t)on_demand, ON_DEMAND_SIZE, odp_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)s[1].mem, s[1].mr->rkey },
	};
	struct ibv_wc wc;

	return side_post(&s[0], &wr) || !side_wait(&s[0], &wc, 60) ? IBV_WC_FATAL_ERR : wc.status;
}

/* ODP-12: a fault is resolved though an allocation failed, or else its QP, and nobody else, has an error. */
TEST_F_TIMEOUT(failures, allocations_of_page_faults, 900)
{
	unsigned int resolved = 0, refused = 0;
	struct side s[2];
	bool failed;

	ASSERT_EQ(0, set_up_failures("1"));
	ASSERT_EQ(0, fail_for_driver("failslab"));
	ASSERT_EQ(0, pair_open(s));
	side = s[0];
	on_demand = mmap(NULL, ON_DEMAND_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, on_demand);
	ASSERT_EQ(0, do_on_demand());
	for (unsigned int bytes = 0; bytes < 1u << 20; bytes += 64) {
		enum ibv_wc_status status;

		ASSERT_EQ(0, madvise(on_demand, ON_DEMAND_SIZE, MADV_DONTNEED));
		ASSERT_EQ(0, fail_after(bytes));
		status = write_absent(s);
		failed = has_failed();
		ASSERT_TRUE(failed || status == IBV_WC_SUCCESS);
		resolved += failed && status == IBV_WC_SUCCESS;
		refused += failed && status == IBV_WC_LOC_PROT_ERR;
		ASSERT_TRUE(status == IBV_WC_SUCCESS || status == IBV_WC_LOC_PROT_ERR) {
			TH_LOG("after %u bytes: %s", bytes, ibv_wc_status_str(status));
		}
		if (!failed)
			break;
		ASSERT_EQ(0, pair_reconnect(s));
	}
	TH_LOG("%u faults were resolved though an allocation failed, %u were not", resolved, refused);
	ASSERT_FALSE(failed);
	ASSERT_LT(0, resolved + refused);
	ASSERT_TRUE(pair_transfer(s));
	undo_on_demand();
	pair_close(s);
}

/* Rings are of single pages, so these fail, too. There are hundreds of them, so every thirteenth allocation does. */
TEST_F_TIMEOUT(failures, allocations_of_the_netdev, 1800)
{
	unsigned int total = 0;

	ASSERT_EQ(0, set_up_failures("0"));
	netdev_fd = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_LE(0, netdev_fd);
	/* The address of IPv6 stays when it goes down. */
	ASSERT_EQ(0, set_knob("/proc/sys/net/ipv6/conf/" NETDEV "/keep_addr_on_down", "1"));
	ASSERT_TRUE(is_sound());
	for (size_t i = 0; i < sizeof(netdev) / sizeof(netdev[0]); i++) {
		const struct step step[] = { netdev[i] };

		FAIL_EACH(step, 13, total);
		ASSERT_TRUE(is_sound()) {
			TH_LOG("%s: no ping gets through", netdev[i].name);
		}
	}
	ASSERT_LT(sizeof(netdev) / sizeof(netdev[0]), total);
	close(netdev_fd);
}

TEST_HARNESS_MAIN
