/* SPDX-License-Identifier: GPL-2.0 */
#ifndef REPLAY_OUTPUT_H
#define REPLAY_OUTPUT_H

#include "replay.h"

/* One governor over one trace, beside the least energy of the same. */
struct row {
	struct result res, least;
};

/* rows is traces x tables x governors, see row_of(). */
struct report {
	const struct trace *traces;
	const struct state_table *tables;
	const char *const *governors;
	size_t nr_traces, nr_tables, nr_governors;
	struct row *rows;
};

struct row *row_of(const struct report *rep, size_t trace, size_t table);
void print_table(const struct report *rep);
void print_json(const struct report *rep);

#endif /* REPLAY_OUTPUT_H */
