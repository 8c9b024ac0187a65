// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables: every column is as wide as its widest cell; numbers stand to the right.
 */
#include "ctl/table.h"

#include <stdbool.h>
#include <string.h>

#include <json-c/json.h>

static const char *cell_text(struct json_object *row, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(row, key, &v) || !v)
		return "-";
	if (json_object_is_type(v, json_type_boolean))
		return json_object_get_boolean(v) ? "yes" : "no";
	return json_object_get_string(v);
}

static bool is_number(struct json_object *rows, const char *key)
{
	struct json_object *v;

	for (size_t r = 0; r < json_object_array_length(rows); r++) {
		if (json_object_object_get_ex(json_object_array_get_idx(rows, r), key, &v))
			return json_object_is_type(v, json_type_int);
	}
	return false;
}

static int wider(int width, const char *text)
{
	int len = strlen(text);

	return len > width ? len : width;
}

void table_print(FILE *f, struct json_object *rows, const struct column *columns, size_t n)
{
	int width[32] = { 0 };
	size_t nrows = json_object_array_length(rows);

	for (size_t c = 0; c < n; c++) {
		width[c] = strlen(columns[c].head);
		for (size_t r = 0; r < nrows; r++)
			width[c] = wider(width[c], cell_text(json_object_array_get_idx(rows, r),
							     columns[c].key));
		if (!is_number(rows, columns[c].key))
			width[c] = -width[c];
	}
	for (size_t c = 0; c < n; c++)
		fprintf(f, "%*s%s", width[c], columns[c].head, c + 1 < n ? "  " : "\n");
	for (size_t r = 0; r < nrows; r++) {
		for (size_t c = 0; c < n; c++)
			fprintf(f, "%*s%s", width[c],
				cell_text(json_object_array_get_idx(rows, r), columns[c].key),
				c + 1 < n ? "  " : "\n");
	}
}

/* The widest cell of the column of @o, whose head is @name. */
static int column_width(struct json_object *o, const char *name)
{
	int width = strlen(name);

	json_object_object_foreach(o, key, value) {
		(void)value;
		width = wider(width, cell_text(o, key));
	}
	return width;
}

void table_print_columns(FILE *f, struct json_object *objects)
{
	struct json_object *first = NULL;
	int names = 0;

	json_object_object_foreach(objects, name, object) {
		(void)name;
		if (!first)
			first = object;
	}
	if (!first)
		return;
	json_object_object_foreach(first, member, unused) {
		(void)unused;
		names = wider(names, member);
	}

	fprintf(f, "%*s", names, "");
	json_object_object_foreach(objects, head, column) {
		fprintf(f, "  %*s", column_width(column, head), head);
	}
	fputc('\n', f);
	json_object_object_foreach(first, key, value) {
		(void)value;
		fprintf(f, "%*s", -names, key);
		json_object_object_foreach(objects, name2, o) {
			fprintf(f, "  %*s", column_width(o, name2), cell_text(o, key));
		}
		fputc('\n', f);
	}
}
