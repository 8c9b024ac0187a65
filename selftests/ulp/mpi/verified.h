/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs of MPI here have in common. Each is started as PROGRAM [SECONDS] on 2 or more ranks. It compares all
 * that it receives, and repeats its rounds until SECONDS are over (one round without). Rank 0 then prints
 * "moved N bytes": so many bytes of messages, at least, have left all ranks together.
 */
#ifndef VERIFIED_H
#define VERIFIED_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Of MPI_COMM_WORLD. */
extern int rank, ranks;
/* What this rank has sent, in bytes. */
extern uint64_t moved;

/* The whole program but one round, which every rank begins together. */
int rounds(int argc, char **argv, void (*one_round)(unsigned int seed));
/* The job ends with status 1 if something is not as it must be. */
void must(int holds, const char *what);

void *allocate(size_t size);
/* Bytes that depend on the seed and on where they stand. */
void fill(void *to, size_t size, unsigned int seed);
/* They are those of fill(). */
void compare(const void *bytes, size_t size, unsigned int seed, const char *what);
void show(const char *name, double value, const char *unit);

#endif
