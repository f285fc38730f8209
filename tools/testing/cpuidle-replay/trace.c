// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a trace of idle periods: a '#' line that tells the tick period, the
 * line of column names, then one line of comma-separated values per period.
 * README.md explains the columns. Files ending in .xz go through xz(1).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "replay.h"

static const char columns[] =
	"cpu,entry_ns,dur_ns,wake_ns,sleep_ns,delta_ns,next,src,irq,flags,state";

enum column {
	COL_CPU, COL_ENTRY, COL_DUR, COL_WAKE, COL_SLEEP, COL_DELTA, COL_NEXT,
	COL_SRC, COL_IRQ, COL_FLAGS, COL_STATE, COL_NR
};

/* Where a column's value may not be negative, and where -1 means "none". */
static const s64 column_min[COL_NR] = {
	[COL_WAKE] = -1, [COL_SLEEP] = -1, [COL_DELTA] = -1,
};

/* How late a timer's interrupt may be and still be that timer's. */
#define TIMER_LATE_NS	(100 * NSEC_PER_USEC)

struct reader {
	const char *path;
	unsigned int line;
	s64 values[COL_NR];
	s64 previous_end;
	s64 cpu;
	struct trace *trace;
};

static bool complain(const struct reader *r, const char *reason)
{
	fprintf(stderr, "%s:%u: %s\n", r->path, r->line, reason);
	return false;
}

static const char *column_name(enum column col)
{
	static char name[16];
	const char *start = columns;
	int i;

	for (i = 0; i < (int)col; i++)
		start = strchr(start, ',') + 1;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(start, ","), start);
	return name;
}

static bool complain_column(const struct reader *r, enum column col,
			    const char *text, const char *allowed)
{
	char reason[200];

	snprintf(reason, sizeof(reason), "%s is \"%.40s\", must be %s",
		 column_name(col), text, allowed);
	return complain(r, reason);
}

static bool parse_tick(struct reader *r, const char *line)
{
	const char *tick = strstr(line, "tick_ns=");
	char *end;

	if (line[0] != '#' || !tick)
		return complain(r, "the first line must start with '#' and have tick_ns=N");

	errno = 0;
	r->trace->tick_ns = strtoll(tick + strlen("tick_ns="), &end, 10);
	if (errno || !strchr("; \n", *end) ||
	    r->trace->tick_ns < NSEC_PER_USEC || r->trace->tick_ns > NSEC_PER_SEC)
		return complain(r, "tick_ns must be from 1000 to 1000000000");

	return true;
}

static bool parse_letter(struct reader *r, enum column col, const char *text,
			 const char *letters)
{
	char allowed[64];

	if (strlen(text) == 1 && strchr(letters, *text)) {
		r->values[col] = *text;
		return true;
	}
	snprintf(allowed, sizeof(allowed), "one of the letters %s", letters);
	return complain_column(r, col, text, allowed);
}

static bool parse_integer(struct reader *r, enum column col, const char *text)
{
	char allowed[64];
	char *end;

	errno = 0;
	r->values[col] = strtoll(text, &end, 10);
	if (!errno && end != text && !*end && r->values[col] >= column_min[col] &&
	    r->values[col] < S64_MAX / 4)
		return true;

	snprintf(allowed, sizeof(allowed), "an integer from %lld",
		 column_min[col]);
	return complain_column(r, col, text, allowed);
}

static bool parse_columns(struct reader *r, char *line)
{
	char *text;
	int col;

	for (col = 0; col < COL_NR; col++) {
		text = strsep(&line, ",");
		if (!text)
			return complain(r, "too few columns, must be 11");
		if (col == COL_NEXT) {
			if (!parse_letter(r, col, text, "hwk-"))
				return false;
		} else if (col == COL_SRC) {
			if (!parse_letter(r, col, text, "TDRCWOPN"))
				return false;
		} else if (!parse_integer(r, col, text)) {
			return false;
		}
	}
	return line ? complain(r, "too many columns, must be 11") : true;
}

static bool check_values(struct reader *r)
{
	const s64 *v = r->values;

	if (v[COL_FLAGS] > FLAG_ALL)
		return complain(r, "flags has unknown bits, must be up to 63");
	if (v[COL_WAKE] > v[COL_DUR])
		return complain(r, "wake_ns is after the end of the period, must be up to dur_ns");
	if ((v[COL_SLEEP] < 0) != (v[COL_NEXT] == '-'))
		return complain(r, "sleep_ns must be -1 where next is '-', and only there");
	if (v[COL_ENTRY] < r->previous_end)
		return complain(r, "entry_ns is before the end of the period before it");
	if (r->trace->nr && v[COL_CPU] != r->cpu)
		return complain(r, "a second CPU, must be one CPU per file");
	return true;
}

static enum next_event next_event(char letter)
{
	switch (letter) {
	case 'h':
		return NEXT_HRTIMER;
	case 'w':
		return NEXT_WHEEL;
	case 'k':
		return NEXT_TICK_KEPT;
	default:
		return NEXT_NONE;
	}
}

/*
 * A timer's interrupt reaches a virtual CPU tens of us after the timer was due.
 * That delay belongs to the host that recorded, not to the CPU replayed, which
 * has an exit latency of its own: the wake-up came when the timer was due.
 */
static s64 idle_time(const s64 *v)
{
	/* No interrupt was seen where polling ended it: then the end. */
	if (v[COL_WAKE] < 0)
		return v[COL_DUR];

	if (v[COL_SRC] == 'T' && v[COL_SLEEP] >= 0 &&
	    v[COL_WAKE] - v[COL_SLEEP] < TIMER_LATE_NS)
		return min(v[COL_WAKE], v[COL_SLEEP]);

	return v[COL_WAKE];
}

static void add_period(struct reader *r)
{
	struct trace *trace = r->trace;
	const s64 *v = r->values;

	if (trace->nr == trace->size) {
		trace->size = trace->size ? 2 * trace->size : 4096;
		trace->periods = realloc(trace->periods,
					 trace->size * sizeof(*trace->periods));
		if (!trace->periods) {
			fprintf(stderr, "%s: out of memory\n", r->path);
			exit(1);
		}
	}

	trace->periods[trace->nr++] = (struct idle_period) {
		.entry = v[COL_ENTRY],
		.idle = idle_time(v),
		.sleep = v[COL_SLEEP] >= 0 ? v[COL_SLEEP] : KTIME_MAX,
		.next = next_event(v[COL_NEXT]),
		.flags = v[COL_FLAGS],
		.src = v[COL_SRC],
		.irq = v[COL_IRQ],
	};
	r->previous_end = v[COL_ENTRY] + v[COL_DUR];
	r->cpu = v[COL_CPU];
}

static bool parse_line(struct reader *r, char *line, size_t len)
{
	if (strlen(line) != len)
		return complain(r, "has a NUL byte, must be text");
	if (!len || line[len - 1] != '\n')
		return complain(r, "is cut off, must end with a newline");

	r->line++;
	if (r->line == 1)
		return parse_tick(r, line);

	line[len - 1] = '\0';
	if (r->line == 2)
		return !strcmp(line, columns) ||
		       complain(r, "the second line must be the column names");

	if (!parse_columns(r, line) || !check_values(r))
		return false;

	add_period(r);
	return true;
}

static bool parse_stream(struct reader *r, FILE *in)
{
	size_t size = 0;
	char *line = NULL;
	bool good = true;
	ssize_t len;

	while (good && (len = getline(&line, &size, in)) >= 0)
		good = parse_line(r, line, len);
	free(line);

	if (good && ferror(in))
		return complain(r, "cannot be read");
	if (good && !r->trace->nr)
		return complain(r, "has no idle periods");
	return good;
}

/* xz -dc PATH; no shell, so that any file name is fine. */
static FILE *open_xz(const char *path, pid_t *child)
{
	int fds[2];

	if (pipe(fds))
		return NULL;

	*child = fork();
	if (*child == 0) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execlp("xz", "xz", "-dc", "--", path, (char *)NULL);
		perror("xz");
		_exit(127);
	}
	close(fds[1]);
	return *child < 0 ? NULL : fdopen(fds[0], "r");
}

static bool is_xz(const char *path)
{
	size_t len = strlen(path);

	return len > 3 && !strcmp(path + len - 3, ".xz");
}

static char *trace_name(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return strndup(base, strcspn(base, "."));
}

/**
 * trace_read - read a whole trace
 * @trace: to be freed with trace_free()
 * @path: the file
 *
 * Return: false after it said on stderr what is wrong, with file and line.
 */
bool trace_read(struct trace *trace, const char *path)
{
	struct reader r = { .path = path, .trace = trace };
	pid_t child = 0;
	int status = 0;
	bool good;
	FILE *in;

	memset(trace, 0, sizeof(*trace));
	trace->name = trace_name(path);

	if (access(path, R_OK)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	in = is_xz(path) ? open_xz(path, &child) : fopen(path, "r");
	if (!in) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}

	good = parse_stream(&r, in);
	fclose(in);
	if (child)
		waitpid(child, &status, 0);
	if (good && status)
		good = complain(&r, "xz could not decompress it to the end");

	return good;
}

void trace_free(struct trace *trace)
{
	free(trace->name);
	free(trace->periods);
}
