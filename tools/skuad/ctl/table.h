/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * JSON as tables for people.
 */
#ifndef SKUAD_CTL_TABLE_H
#define SKUAD_CTL_TABLE_H

#include <stddef.h>
#include <stdio.h>

struct json_object;

struct column {
	const char *head;	/* what people read */
	const char *key;	/* of the member */
};

/* A line of heads, then one for each object in the array @rows; what is missing is "-". */
void table_print(FILE *f, struct json_object *rows, const struct column *columns, size_t n);

/* An object of objects with the same members, each as a column below its name. */
void table_print_columns(FILE *f, struct json_object *objects);

#endif /* SKUAD_CTL_TABLE_H */
