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
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	return nth_fd < 0 ||
	       set_knob("/sys/kernel/debug/failslab/ignore-gfp-wait", "0") ||
	       set_knob("/sys/kernel/debug/failslab/verbose", "0") ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "0") ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/min-order", order) ||
	       set_knob("/sys/kernel/debug/fail_page_alloc/verbose", "0") ||
	       fail_for_all_callers("failslab") || fail_for_all_callers("fail_page_alloc");
}

FIXTURE(failures) {};
FIXTURE_SETUP(failures) { }
FIXTURE_TEARDOWN(failures) { }

TEST_F_TIMEOUT(failures, every_allocation_of_every_verb, 1800)
{
	unsigned int total = 0;

	ASSERT_EQ(0, set_up_failures("1"));
	ASSERT_EQ(0, side_open(&side, "skua_0"));
	FAIL_EACH(verbs, 1, total);
	ASSERT_LT(sizeof(verbs) / sizeof(verbs[0]), total);
	ASSERT_EQ(0, do_qp());
	ASSERT_EQ(0, do_srq());
	ASSERT_EQ(0, do_dm());
	ASSERT_EQ(0, do_mr());
	ASSERT_LE(0, dmabuf = export_buffer(1 << 20, 0, 0));
	ASSERT_NE(NULL, ud = side_create_qp_of(&side, IBV_QPT_UD));
	total = 0;
	FAIL_EACH(verbs_of_objects, 1, total);
	ASSERT_LT(sizeof(verbs_of_objects) / sizeof(verbs_of_objects[0]), total);
	ASSERT_EQ(0, ibv_destroy_qp(ud));
	close(dmabuf);
	ASSERT_TRUE(none_exported());
	undo_mr();
	undo_dm();
	undo_srq();
	undo_qp();
	side_close(&side);
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
