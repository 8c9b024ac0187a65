/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a switch has learned: behind which port an address is. Any thread may learn and look up;
 * an answer that is out of date costs a flooded or a lost frame, as on any switch.
 */
#ifndef SKUAD_LINK_MACTAB_H
#define SKUAD_LINK_MACTAB_H

#include <stdint.h>

#define MACTAB_SIZE	1024
#define MACTAB_AGE_S	300	/* an address that was not heard of for so long is forgotten */

/* A MAC in the lower 48 bits, the port's number above; 0: empty. */
struct mactab {
	uint64_t entry[MACTAB_SIZE];
	uint32_t heard[MACTAB_SIZE];	/* seconds */
};

/* @mac is behind port @number (1 to 65535), as of @now, in seconds. Group addresses are not
 * learned. */
void mactab_learn(struct mactab *tab, const uint8_t *mac, uint16_t number, uint32_t now);

/* The port's number; 0: not known. */
uint16_t mactab_find(const struct mactab *tab, const uint8_t *mac, uint32_t now);

#endif /* SKUAD_LINK_MACTAB_H */
