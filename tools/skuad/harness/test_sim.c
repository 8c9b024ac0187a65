// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Worlds by chance, run until their work is done or an invariant is broken (sim.h).
 *
 * SKUA_WORLDS=N	how many worlds; the default suits a build with sanitizers
 * SKUA_SEED=N		the seed of the first; the others follow
 * SKUA_WORLD=SEED	just this one, and it is described
 * SKUA_WITHOUT=PART,..	switch parts of every world off: those that a shrunken world names, qpN,
 *			and checks (check-armed, ...)
 * SKUA_ENOUGH=N		stop when so many worlds have failed
 * SKUA_BRIEF=1		a line for each failure, and none is shrunk
 * SKUA_ARTIFACTS=DIR	where a capture of each kind of failure goes; else TMPDIR, or /tmp
 *
 * Of each kind of failure the first world is shrunk and described; all are counted.
 *
 * Each processor runs every n-th world, in a process of its own. What becomes of them is taken in the order of
 * their seeds.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/sim.h"

#define WORLDS		500
#define KINDS		40
#define WORKERS		64

static struct {
	pid_t pid;
	int results;
} worker[WORKERS];

static struct {
	char name[40];
	uint64_t count, first;
} kinds[KINDS];

static uint64_t current;		/* the world that runs, for atexit() */
static bool running;

/* Asserts of the harness end the process. */
static void say_where(void)
{
	if (running)
		fprintf(stderr, "in world %llu\n", (unsigned long long)current);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static const char *program;

static void say_command(uint64_t seed, struct sim_off off)
{
	printf("  SKUA_WORLD=%llu ", (unsigned long long)seed);
	if (off.parts || off.qps) {
		printf("SKUA_WITHOUT=");
		sim_off_print(stdout, off);
		printf(" ");
	}
	printf("%s\n", program);
}

static void capture_path(char *path, size_t len, uint64_t seed)
{
	const char *dir = getenv("SKUA_ARTIFACTS");

	if (!dir || !*dir)
		dir = getenv("TMPDIR");
	snprintf(path, len, "%s/skua-world-%llu.pcapng", dir && *dir ? dir : "/tmp",
		 (unsigned long long)seed);
}

static void explain(uint64_t seed, struct sim_off off, const struct sim_failure *f)
{
	struct sim_failure again;
	struct sim_off less;
	char path[4096];

	printf("world %llu fails after %.6f s: %s: %s\n", (unsigned long long)seed, (double)f->at / 1e9,
	       f->kind, f->text);
	say_command(seed, off);
	fflush(stdout);
	current = seed;
	running = true;
	less = sim_shrink(seed, off, f->kind);
	capture_path(path, sizeof(path), seed);
	printf("what is left when all else is switched off:\n");
	say_command(seed, less);
	again = sim_world(seed, less, path, stdout).failure;
	printf("  fails after %.6f s: %s: %s\n  capture of node a: %s\n\n", (double)again.at / 1e9, again.kind,
	       again.text, path);
	fflush(stdout);
	running = false;
}

/* True: the first of its kind. */
static bool count(uint64_t seed, const char *kind)
{
	unsigned int i;

	for (i = 0; i < KINDS - 1 && kinds[i].count && strcmp(kinds[i].name, kind); i++)
		;
	if (!kinds[i].count) {
		snprintf(kinds[i].name, sizeof(kinds[i].name), "%s", kind);
		kinds[i].first = seed;
	}
	return kinds[i].count++ == 0;
}

static struct sim_result run(uint64_t seed, struct sim_off off, FILE *words)
{
	struct sim_result r;

	current = seed;
	running = true;
	r = sim_world(seed, off, NULL, words);
	running = false;
	return r;
}

/* Every @n-th world from @seed on, up to @end. */
static void work(int results, uint64_t seed, uint64_t end, unsigned int n, struct sim_off off)
{
	for (; seed < end; seed += n) {
		struct sim_result r = run(seed, off, NULL);

		/* At once, since it is less than PIPE_BUF. */
		if (write(results, &r, sizeof(r)) != sizeof(r))
			exit(1);
	}
	exit(0);
}

static unsigned int start_workers(uint64_t seed, uint64_t worlds, struct sim_off off)
{
	unsigned int n;
	cpu_set_t cpus;
	int fd[2];

	n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (unsigned int)CPU_COUNT(&cpus);
	n = n > WORKERS ? WORKERS : n;
	fflush(stdout);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(pipe(fd), 0);
		worker[i].pid = fork();
		assert_true(worker[i].pid >= 0);
		if (!worker[i].pid) {
			for (unsigned int k = 0; k < i; k++)
				close(worker[k].results);
			close(fd[0]);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(fd[1], seed + i, seed + worlds, n, off);
		}
		close(fd[1]);
		worker[i].results = fd[0];
	}
	return n;
}

/* True: all of them ended well. Those that are not @done are ended. */
static bool end_workers(unsigned int n, bool done)
{
	bool good = true;
	int status;

	for (unsigned int i = 0; i < n; i++) {
		if (!done)
			kill(worker[i].pid, SIGKILL);
		close(worker[i].results);
		good &= waitpid(worker[i].pid, &status, 0) == worker[i].pid && !status;
	}
	return good || !done;
}

/* A world by itself, as a test of cmocka's, which prints what an assert of the harness has to say. */
static struct {
	uint64_t seed;
	struct sim_off off;
} alone;

static void it_passes(void **state)
{
	struct sim_failure f = run(alone.seed, alone.off, stdout).failure;
	char path[4096];

	(void)state;
	if (!f.kind[0])
		return;
	capture_path(path, sizeof(path), alone.seed);
	sim_world(alone.seed, alone.off, path, NULL);
	fail_msg("world %llu fails after %.6f s: %s: %s\ncapture of node a: %s", (unsigned long long)alone.seed,
		 (double)f.at / 1e9, f.kind, f.text, path);
}

static int one(uint64_t seed, struct sim_off off)
{
	const struct CMUnitTest world[] = { cmocka_unit_test(it_passes) };

	alone.seed = seed;
	alone.off = off;
	return cmocka_run_group_tests(world, NULL, NULL);
}

/* Once more, in a process of its own. */
static void explain_death(uint64_t seed, struct sim_off off)
{
	pid_t pid;

	printf("world %llu: the process died\n", (unsigned long long)seed);
	say_command(seed, off);
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(one(seed, off));
	waitpid(pid, NULL, 0);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t worlds = number("SKUA_WORLDS", WORLDS), seed = number("SKUA_SEED", 1), done = 0, failed = 0;
	uint64_t enough = number("SKUA_ENOUGH", UINT64_MAX);
	const char *without = getenv("SKUA_WITHOUT");
	bool brief = number("SKUA_BRIEF", 0), slow, died;
	double start = seconds();
	struct sim_off off;
	unsigned int n;

	(void)argc;
	program = argv[0];
	if (!sim_off_parse(&off, without ? without : "")) {
		fprintf(stderr, "SKUA_WITHOUT: no such part\n");
		return 2;
	}
	atexit(say_where);
	if (getenv("SKUA_WORLD"))
		return one(number("SKUA_WORLD", 1), off);
	n = start_workers(seed, worlds, off);
	while (done < worlds && failed < enough) {
		uint64_t at = seed + done;
		struct sim_result r;
		const struct sim_failure *f = &r.failure;

		if (read(worker[done % n].results, &r, sizeof(r)) != sizeof(r))
			break;
		done++;
		sim_add_cost(&r.cost);
		if (!f->kind[0])
			continue;
		failed++;
		if (brief)
			printf("world %llu fails after %.6f s: %s: %s\n", (unsigned long long)at,
			       (double)f->at / 1e9, f->kind, f->text);
		if (count(at, f->kind) && !brief)
			explain(at, off, f);
	}
	for (unsigned int i = 0; i < KINDS && kinds[i].count; i++)
		printf("%-16s %llu worlds, first %llu\n", kinds[i].name,
		       (unsigned long long)kinds[i].count, (unsigned long long)kinds[i].first);
	died = done < worlds && failed < enough;
	if (died)
		explain_death(seed + done, off);
	if (!end_workers(n, done == worlds)) {
		printf("a process failed after its last world\n");
		died = true;
	}
	/* Worlds that failed, and parts that are off, distort the means. */
	slow = !sim_costs_little(stdout, done) && !failed && !off.parts && !off.qps;
	if (slow)
		printf("%-16s %llu worlds, first %llu\n", "costs", (unsigned long long)done,
		       (unsigned long long)seed);
	printf("worlds %llu to %llu in %.1f s\n", (unsigned long long)seed,
	       (unsigned long long)(seed + done - 1), seconds() - start);
	printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(done - failed),
	       (unsigned long long)(failed + slow + died));
	return failed || slow || died;
}
