// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hash table of buckets of a few entries; in a bucket that is full, the address that was not
 * heard of for the longest time makes room.
 */
#include "link/mactab.h"

#include <stdbool.h>
#include <string.h>

#define BUCKET	4
#define MAC_MASK	0xffffffffffffull

static uint64_t key_of(const uint8_t *mac)
{
	uint64_t key = 0;

	for (int i = 0; i < 6; i++)
		key = key << 8 | mac[i];
	return key;
}

static unsigned int bucket_of(uint64_t key)
{
	return (unsigned int)(key * 0x9e3779b97f4a7c15u >> 40) % (MACTAB_SIZE / BUCKET) * BUCKET;
}

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static uint32_t age(const struct mactab *tab, unsigned int i, uint32_t now)
{
	uint32_t heard = __atomic_load_n(&tab->heard[i], __ATOMIC_RELAXED);

	/* Another thread's clock may be a little ahead. */
	return heard > now ? 0 : now - heard;
}

void mactab_learn(struct mactab *tab, const uint8_t *mac, uint16_t number, uint32_t now)
{
	uint64_t key = key_of(mac), entry = key | (uint64_t)number << 48;
	unsigned int first = bucket_of(key), place = first;
	uint32_t oldest = 0;

	if (mac[0] & 1)
		return;
	for (unsigned int i = first; i < first + BUCKET; i++) {
		uint64_t e = load(&tab->entry[i]);
		uint32_t a = e ? age(tab, i, now) : UINT32_MAX;

		if (e && (e & MAC_MASK) == key) {
			place = i;
			break;
		}
		if (a > oldest) {
			oldest = a;
			place = i;
		}
	}
	if (load(&tab->entry[place]) != entry)
		__atomic_store_n(&tab->entry[place], entry, __ATOMIC_RELAXED);
	if (__atomic_load_n(&tab->heard[place], __ATOMIC_RELAXED) != now)
		__atomic_store_n(&tab->heard[place], now, __ATOMIC_RELAXED);
}

uint16_t mactab_find(const struct mactab *tab, const uint8_t *mac, uint32_t now)
{
	uint64_t key = key_of(mac);
	unsigned int first = bucket_of(key);

	for (unsigned int i = first; i < first + BUCKET; i++) {
		uint64_t e = load(&tab->entry[i]);

		if (e && (e & MAC_MASK) == key)
			return age(tab, i, now) <= MACTAB_AGE_S ? (uint16_t)(e >> 48) : 0;
	}
	return 0;
}
