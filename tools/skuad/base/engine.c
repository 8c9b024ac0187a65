// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine loop: clients (devices) that have work are run in turn; sockets are looked at in between,
 * and slept on when there is no work.
 *
 * Spinning is worth most when the host posts again at once, and is ruinous when the host wants
 * the core that we spin on. So there is no window in which idle queues are still looked at
 * while more threads want to run than there are cores, or the kernel takes the core from us;
 * it grows back slowly.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/copy.h"
#include "base/engine_priv.h"

#define SPIN_MAX_NS	20000
#define SPIN_STEP_NS	200
#define TUNE_NS		1000000
#define POLL_NS		5000		/* between looks at the sockets while busy */
#define MAX_EVENTS	32
#define HOT_GAP_NS	(2 * POLL_NS)	/* ready twice within: it is hot */
#define HOT_MISSES	8		/* looks that find nothing, then it is not */
#define HOT_MAX		16
#define BLOCKED_NS	1000000		/* idle queues are looked at so often while a wire is full */
#define STALL_NS	1000000		/* a round that takes longer is a stall */
#define STALL_LOOKS	64		/* at the sockets after it: their buffers hold no more */
#define STALL_LOOKS_NS	10000000	/* these looks begin no later: the devices wait for them */

struct engine_request {
	STAILQ_ENTRY(engine_request) entry;
	void (*fn)(void *arg);
	void *arg;
	bool done;
	pthread_cond_t cond;
};

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void wake_ready(struct engine_fd *efd)
{
	uint64_t n;

	if (read(efd->fd, &n, sizeof(n)) < 0)
		return;		/* somebody else's wake-up was read already */
}

struct engine *engine_create(bool manual_clock)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	cpu_set_t set;

	if (!engine)
		return NULL;
	engine->manual = manual_clock;
	engine->now = manual_clock ? 1000000000 : clock_ns();
	engine->spin_ns = manual_clock ? 0 : SPIN_MAX_NS;
	TAILQ_INIT(&engine->clients);
	STAILQ_INIT(&engine->requests);
	pthread_mutex_init(&engine->lock, NULL);
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	engine->load_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	engine->cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
	engine->wake = (struct engine_fd){ .fd = engine->wake_fd, .ready = wake_ready };
	if (engine->epoll_fd < 0 || engine->wake_fd < 0 ||
	    engine_fd_add(engine, &engine->wake)) {
		engine_destroy(engine);
		return NULL;
	}
	return engine;
}

void engine_destroy(struct engine *engine)
{
	if (engine->epoll_fd >= 0)
		close(engine->epoll_fd);
	if (engine->wake_fd >= 0)
		close(engine->wake_fd);
	if (engine->load_fd >= 0)
		close(engine->load_fd);
	pthread_mutex_destroy(&engine->lock);
	timers_free(&engine->timers);
	free(engine);
}

/* Of epoll's set: from what is waited for there to @events. */
static int tell_epoll(struct engine *engine, struct engine_fd *efd, int from, int events)
{
	struct epoll_event ev = { .events = (uint32_t)events, .data.ptr = efd };
	int op = !from ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (from == events)
		return 0;
	return epoll_ctl(engine->epoll_fd, op, efd->fd, &ev) ? -errno : 0;
}

int engine_fd_watch(struct engine *engine, struct engine_fd *efd, int events)
{
	int err = efd->hot ? 0 : tell_epoll(engine, efd, efd->events, events);

	if (err)
		return err;
	timer_cancel(&engine->timers, &efd->rest);
	engine->watched += !!events - !!efd->events;
	efd->events = events;
	return 0;
}

int engine_fd_add(struct engine *engine, struct engine_fd *efd)
{
	return engine_fd_watch(engine, efd, POLLIN);
}

static void forget_hot(struct engine *engine, struct engine_fd *efd)
{
	if (engine->looking == efd)
		engine->looking = NULL;
	LIST_REMOVE(efd, entry);
	engine->num_hot--;
	efd->hot = false;
}

static void rest_over(struct timer *timer)
{
	struct engine_fd *efd = (void *)((char *)timer - offsetof(struct engine_fd, rest));

	/* Without memory for epoll it rests longer. */
	if (engine_fd_watch(efd->engine, efd, efd->rest_events))
		timer_set(&efd->engine->timers, timer, efd->engine->now + TUNE_NS);
}

void engine_fd_rest(struct engine *engine, struct engine_fd *efd, uint64_t ns)
{
	/* One that rests already is not watched now. */
	if (efd->events)
		efd->rest_events = efd->events;
	engine_fd_watch(engine, efd, 0);
	efd->engine = engine;
	efd->rest.fire = rest_over;
	timer_set(&engine->timers, &efd->rest, engine->now + ns);
}

void engine_fd_del(struct engine *engine, struct engine_fd *efd)
{
	engine_fd_watch(engine, efd, 0);
	if (efd->hot)
		forget_hot(engine, efd);
}

/*
 * Where something is found at each look, looking costs less than being told: of each frame that
 * comes or goes, and each time that what is waited for changes. So what is hot is not in epoll's
 * set, and is tried; only sleepers wait for it. Where nothing is found it goes back, and costs
 * nothing.
 */
static void make_hot(struct engine *engine, struct engine_fd *efd)
{
	if (engine->num_hot == HOT_MAX || tell_epoll(engine, efd, efd->events, 0))
		return;
	efd->hot = true;
	efd->misses = 0;
	LIST_INSERT_HEAD(&engine->hot, efd, entry);
	engine->num_hot++;
}

static void missed(struct engine *engine, struct engine_fd *efd)
{
	/* Without memory for epoll it stays here. */
	if (++efd->misses >= HOT_MISSES && !tell_epoll(engine, efd, 0, efd->events))
		forget_hot(engine, efd);
}

static bool serve_hot(struct engine *engine)
{
	struct engine_fd *efd, *next;
	bool any = false, found;

	for (efd = LIST_FIRST(&engine->hot); efd; efd = next) {
		engine->looking = efd;
		found = efd->events && efd->look(efd);
		any |= found;
		/* Who has forgotten itself: the others have their turn the next time. */
		if (!engine->looking)
			break;
		next = LIST_NEXT(efd, entry);
		if (found)
			efd->misses = 0;
		else
			missed(engine, efd);
	}
	return any;
}

/*
 * Until something is ready, or so long: by ppoll(), since epoll_wait() knows milliseconds only,
 * and epoll_pwait2() is not there on every kernel.
 */
static void await(struct engine *engine, uint64_t ns)
{
	struct pollfd fds[1 + HOT_MAX] = { { .fd = engine->epoll_fd, .events = POLLIN } };
	struct timespec wait = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000),
	};
	struct engine_fd *efd;
	nfds_t n = 1;

	LIST_FOREACH(efd, &engine->hot, entry)
		if (efd->events)
			fds[n++] = (struct pollfd){ .fd = efd->fd, .events = (short)efd->events };
	ppoll(fds, n, ns == TIMER_NEVER ? NULL : &wait, NULL);
}

static void update_clock(struct engine *engine)
{
	if (!engine->manual)
		engine->now = clock_ns();
}

/* @efd, which is in epoll's set, is ready. */
static void serve(struct engine *engine, struct engine_fd *efd)
{
	if (efd->ready) {
		efd->ready(efd);
		return;
	}
	if (engine->now - efd->heard < HOT_GAP_NS)
		make_hot(engine, efd);
	efd->heard = engine->now;
	efd->look(efd);
}

/*
 * One event at a time, because a callback may forget and free any other descriptor. Each descriptor is served once:
 * epoll returns the ready ones in turn, so when it returns one a second time, all others have been served or are not
 * ready. What is left of that one waits for the next step.
 */
static bool serve_fds(struct engine *engine, uint64_t ns)
{
	struct epoll_event ev;
	struct engine_fd *efd;
	bool any = false;

	if (ns)
		await(engine, ns);
	engine->look++;
	if (!LIST_EMPTY(&engine->hot)) {
		update_clock(engine);
		any = serve_hot(engine);
	}
	for (int i = 0; i < MAX_EVENTS && epoll_wait(engine->epoll_fd, &ev, 1, 0) == 1; i++) {
		efd = ev.data.ptr;
		if (efd->served == engine->look)
			break;
		efd->served = engine->look;
		update_clock(engine);
		serve(engine, efd);
		any = true;
	}
	return any;
}

static bool serve_requests(struct engine *engine)
{
	struct engine_request *req;
	bool any = false;

	pthread_mutex_lock(&engine->lock);
	while ((req = STAILQ_FIRST(&engine->requests))) {
		STAILQ_REMOVE_HEAD(&engine->requests, entry);
		pthread_mutex_unlock(&engine->lock);
		req->fn(req->arg);
		pthread_mutex_lock(&engine->lock);
		req->done = true;
		pthread_cond_signal(&req->cond);
		any = true;
	}
	pthread_mutex_unlock(&engine->lock);
	return any;
}

void engine_join(struct engine *engine, struct engine_client *client)
{
	TAILQ_INSERT_TAIL(&engine->clients, client, entry);
}

void engine_leave(struct engine *engine, struct engine_client *client)
{
	TAILQ_REMOVE(&engine->clients, client, entry);
}

static bool run_clients(struct engine *engine)
{
	struct engine_client *client;
	bool any = false;

	TAILQ_FOREACH(client, &engine->clients, entry)
		any |= client->run(client);
	return any;
}

bool engine_run_timers(struct engine *engine)
{
	engine->turn = TURN_COST;
	return timers_run(&engine->timers, engine->taken, &engine->turn);
}

/* A round of the clients, which began at engine->now. */
static bool run_round(struct engine *engine)
{
	bool any;

	if (!engine->left) {
		engine->look_begun = engine->now;
		engine->look_number++;
	}
	engine->left = false;
	any = run_clients(engine);
	if (!engine->left)
		engine->taken = engine->look_begun;
	return any;
}

bool engine_step(struct engine *engine)
{
	/* Who does not sleep is not woken. Without other descriptors, system calls would be half of all work. */
	bool any = engine->watched > 1 && serve_fds(engine, 0);

	any |= run_round(engine);
	/* Received work first: what came in time does not time out. */
	if (!any)
		any = engine_run_timers(engine);
	return any;
}

/* Has any client work, or idle queues to look at? */
static bool active(const struct engine *engine)
{
	const struct engine_client *client;

	TAILQ_FOREACH(client, &engine->clients, entry)
		if (client->is_active(client))
			return true;
	return false;
}

/* Do all of these wait for a wire that is full? */
static bool blocked(const struct engine *engine)
{
	const struct engine_client *client;

	TAILQ_FOREACH(client, &engine->clients, entry)
		if (client->is_active(client) && !client->is_blocked(client))
			return false;
	return true;
}

/* Do more threads of this machine want to run than we may use cores? Unknown is no. */
static bool crowded(const struct engine *engine)
{
	char text[64];
	ssize_t n = pread(engine->load_fd, text, sizeof(text) - 1, 0);
	unsigned int runnable;

	if (n <= 0)
		return false;
	text[n] = '\0';
	return sscanf(text, "%*s %*s %*s %u/", &runnable) == 1 && runnable > engine->cores;
}

/* Is somebody else after the core that we spin on? */
static void tune_spin(struct engine *engine)
{
	struct rusage usage;

	if (engine->now < engine->next_tune)
		return;
	engine->next_tune = engine->now + TUNE_NS;
	getrusage(RUSAGE_THREAD, &usage);
	if (usage.ru_nivcsw != engine->switches || crowded(engine))
		engine->spin_ns = 0;
	else if (engine->spin_ns < SPIN_MAX_NS)
		engine->spin_ns += SPIN_STEP_NS;
	engine->switches = usage.ru_nivcsw;
}

/* No longer than that: pacing and lines of a rate are as even as we wake. */
static uint64_t sleep_ns(const struct engine *engine)
{
	uint64_t next = timers_next(&engine->timers);

	if (next == TIMER_NEVER)
		return TIMER_NEVER;
	return next > engine->now ? next - engine->now : 0;
}

static void go_to_sleep(struct engine *engine)
{
	__atomic_store_n(&engine->sleeping, true, __ATOMIC_SEQ_CST);
	/* Whoever handed over work before it saw us asleep did not wake us: look again. */
	if (!serve_requests(engine) && !run_clients(engine) && blocked(engine) &&
	    !__atomic_load_n(&engine->stop, __ATOMIC_ACQUIRE)) {
		uint64_t ns = sleep_ns(engine);

		serve_fds(engine, active(engine) && ns > BLOCKED_NS ? BLOCKED_NS : ns);
	}
	__atomic_store_n(&engine->sleeping, false, __ATOMIC_SEQ_CST);
}

/*
 * When the engine has stood still since @before, what its timers wait for may have come meanwhile, and lie behind much
 * else: it is taken before they fire. Else a packet would count as lost that lies in a socket. These looks may take as
 * long as a stall, so the engine looks only once a round until the devices have had as much time.
 */
static bool look_at_sockets(struct engine *engine, uint64_t before, uint64_t begun)
{
	bool any = serve_fds(engine, 0);
	uint64_t now;

	if (!any || begun - before <= STALL_NS || begun < engine->looks_until)
		return any;
	for (int i = 1; i < STALL_LOOKS && clock_ns() - begun < STALL_LOOKS_NS && serve_fds(engine, 0); i++)
		;
	now = clock_ns();
	engine->looks_until = now + (now - begun);
	return any;
}

/* From here on, and until then, requests are this thread's. */
static void set_running(struct engine *engine, bool on)
{
	bool done = false;

	while (!done) {
		serve_requests(engine);
		pthread_mutex_lock(&engine->lock);
		done = STAILQ_EMPTY(&engine->requests);
		if (done)
			engine->running = on;
		pthread_mutex_unlock(&engine->lock);
	}
}

void engine_run(struct engine *engine)
{
	uint64_t begun = clock_ns(), before;

	set_running(engine, true);
	while (!__atomic_load_n(&engine->stop, __ATOMIC_ACQUIRE)) {
		bool any;

		before = begun;
		begun = clock_ns();
		engine->now = begun;
		any = run_round(engine);
		if (engine->now >= engine->next_poll) {
			any |= look_at_sockets(engine, before, begun);
			any |= serve_requests(engine);
			engine_run_timers(engine);
			engine->next_poll = engine->now + POLL_NS;
			tune_spin(engine);
		}
		if (any)
			continue;
		if (engine_run_timers(engine))
			continue;
		if (blocked(engine))
			go_to_sleep(engine);
	}
	set_running(engine, false);
	__atomic_store_n(&engine->stopped, true, __ATOMIC_RELEASE);
}

void engine_kick(struct engine *engine)
{
	uint64_t one = 1;

	/* Pairs with go_to_sleep(): our work is visible before we ask whether it sleeps. */
	host_full_barrier();
	if (__atomic_load_n(&engine->sleeping, __ATOMIC_SEQ_CST) &&
	    write(engine->wake_fd, &one, sizeof(one)) < 0)
		return;		/* full: it is awake already */
}

void engine_stop(struct engine *engine)
{
	__atomic_store_n(&engine->stop, true, __ATOMIC_RELEASE);
	engine_kick(engine);
}

void engine_call(struct engine *engine, void (*fn)(void *arg), void *arg)
{
	struct engine_request req = { .fn = fn, .arg = arg, .cond = PTHREAD_COND_INITIALIZER };

	pthread_mutex_lock(&engine->lock);
	if (!engine->running) {
		/* With the lock, so that it does not begin to run meanwhile. */
		fn(arg);
		pthread_mutex_unlock(&engine->lock);
		return;
	}
	STAILQ_INSERT_TAIL(&engine->requests, &req, entry);
	pthread_mutex_unlock(&engine->lock);
	engine_kick(engine);
	pthread_mutex_lock(&engine->lock);
	while (!req.done)
		pthread_cond_wait(&req.cond, &engine->lock);
	pthread_mutex_unlock(&engine->lock);
}

uint64_t engine_now(struct engine *engine)
{
	return engine->now;
}

void engine_clock_advance(struct engine *engine, uint64_t ns)
{
	engine->now += ns;
}
