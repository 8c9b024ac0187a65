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
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "harness/sim.h"

#define WORLDS		500
#define KINDS		40

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
	struct sim_off less;
	char path[4096];

	printf("world %llu fails after %.6f s: %s: %s\n", (unsigned long long)seed, (double)f->at / 1e9,
	       f->kind, f->text);
	say_command(seed, off);
	fflush(stdout);
	less = sim_shrink(seed, off, f->kind);
	capture_path(path, sizeof(path), seed);
	printf("what is left when all else is switched off:\n");
	say_command(seed, less);
	*(struct sim_failure *)(uintptr_t)f = sim_world(seed, less, path, stdout);
	printf("  fails after %.6f s: %s: %s\n  capture of node a: %s\n\n", (double)f->at / 1e9, f->kind,
	       f->text, path);
	fflush(stdout);
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

static struct sim_failure run(uint64_t seed, struct sim_off off, FILE *words)
{
	struct sim_failure f;

	current = seed;
	running = true;
	f = sim_world(seed, off, NULL, words);
	running = false;
	return f;
}

static int one(uint64_t seed, struct sim_off off)
{
	struct sim_failure f = run(seed, off, stdout);
	char path[4096];

	if (!f.kind[0]) {
		printf("world %llu passed\n", (unsigned long long)seed);
		return 0;
	}
	capture_path(path, sizeof(path), seed);
	sim_world(seed, off, path, NULL);
	printf("world %llu fails after %.6f s: %s: %s\ncapture of node a: %s\n",
	       (unsigned long long)seed, (double)f.at / 1e9, f.kind, f.text, path);
	return 1;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t worlds = number("SKUA_WORLDS", WORLDS), seed = number("SKUA_SEED", 1), failed = 0;
	uint64_t enough = number("SKUA_ENOUGH", UINT64_MAX);
	bool slow;
	const char *without = getenv("SKUA_WITHOUT");
	bool brief = number("SKUA_BRIEF", 0);
	double start = seconds();
	struct sim_off off;

	(void)argc;
	program = argv[0];
	if (!sim_off_parse(&off, without ? without : "")) {
		fprintf(stderr, "SKUA_WITHOUT: no such part\n");
		return 2;
	}
	atexit(say_where);
	if (getenv("SKUA_WORLD"))
		return one(number("SKUA_WORLD", 1), off);
	for (uint64_t i = 0; i < worlds; i++) {
		struct sim_failure f = run(seed + i, off, NULL);

		if (!f.kind[0])
			continue;
		failed++;
		running = true;
		if (brief)
			printf("world %llu fails after %.6f s: %s: %s\n", (unsigned long long)(seed + i),
			       (double)f.at / 1e9, f.kind, f.text);
		if (count(seed + i, f.kind) && !brief)
			explain(seed + i, off, &f);
		running = false;
		if (failed >= enough)
			worlds = i + 1;
	}
	for (unsigned int i = 0; i < KINDS && kinds[i].count; i++)
		printf("%-16s %llu worlds, first %llu\n", kinds[i].name,
		       (unsigned long long)kinds[i].count, (unsigned long long)kinds[i].first);
	/* Worlds that failed, and parts that are off, distort the means. */
	slow = !sim_costs_little(stdout, worlds) && !failed && !off.parts && !off.qps;
	if (slow)
		printf("%-16s %llu worlds, first %llu\n", "costs", (unsigned long long)worlds,
		       (unsigned long long)seed);
	failed += slow;
	printf("worlds %llu to %llu in %.1f s\n", (unsigned long long)seed,
	       (unsigned long long)(seed + worlds - 1), seconds() - start);
	printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(worlds + slow - failed),
	       (unsigned long long)failed);
	return failed > 0;
}
