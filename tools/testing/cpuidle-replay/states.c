// SPDX-License-Identifier: GPL-2.0
/*
 * State tables: the ones that the results are stated for, every table of
 * intel_idle.c under its name there, and files.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "replay.h"

/*
 * Illustrative powers relative to polling. They are not those of any CPU; what
 * matters is that they fall about as much from state to state as they do there.
 */
static const struct {
	const char *prefix;
	double power;
} powers[] = {
	{ "POLL", 1.0 }, { "C0", 0.8 }, { "C1E", 0.35 }, { "C10", 0.01 },
	{ "C1", 0.45 }, { "C2", 0.25 }, { "C3", 0.15 }, { "C4", 0.1 },
	{ "C6", 0.05 }, { "C7", 0.04 }, { "C8", 0.03 }, { "C9", 0.02 },
	{ "HLT", 0.45 },
};

/* Tables that are not in intel_idle.c as they are; times in ns, POLL is implied. */
struct builtin_state {
	const char *name;
	s64 exit_latency_ns, target_residency_ns;
};

static const struct builtin_table {
	const char *name, *what;
	struct builtin_state states[CPUIDLE_STATE_MAX];
} builtin_tables[] = {
	{ "spr-c02", "Sapphire Rapids with C0.2", {
		{ "C0.2", 200, 200 }, { "C1", 1000, 1000 },
		{ "C1E", 2000, 4000 }, { "C6", 290000, 800000 } } },
	{ "hsx", "Haswell server: what MWAIT leaves of hsw_cstates there", {
		{ "C1", 2000, 2000 }, { "C1E", 10000, 20000 },
		{ "C3", 33000, 100000 }, { "C6", 133000, 400000 } } },
	{ "c1-c6", "a shallow and a deep state", {
		{ "C1", 1000, 1000 }, { "C6", 290000, 800000 } } },
	{ "c1", "one shallow state, as max_cstate=1 leaves it", {
		{ "C1", 1000, 1000 } } },
	{ "hlt", "POLL and HLT, as cpuidle-haltpoll has it in guests", {
		{ "HLT", 1000, 1000 } } },
	{ "poll", "polling only", { { NULL, 0, 0 } } },
};

static double default_power(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(powers); i++)
		if (!strncmp(name, powers[i].prefix, strlen(powers[i].prefix)))
			return powers[i].power;
	return 0.1;
}

static int add_state(struct state_table *table, const char *name,
		     s64 exit_latency_ns, s64 target_residency_ns, double power)
{
	int i = table->drv.state_count++;
	struct cpuidle_state *s = &table->drv.states[i];

	snprintf(s->name, sizeof(s->name), "%s", name);
	s->exit_latency_ns = exit_latency_ns;
	s->exit_latency = exit_latency_ns / NSEC_PER_USEC;
	s->target_residency_ns = target_residency_ns;
	s->target_residency = target_residency_ns / NSEC_PER_USEC;

	/* Two states of one kind (C6N, C6S): the deeper one takes a bit less. */
	if (i && power >= table->power[i - 1])
		power = table->power[i - 1] * 0.9;
	table->power[i] = power;
	return i;
}

static void start_table(struct state_table *table, const char *name)
{
	memset(table, 0, sizeof(*table));
	snprintf(table->name, sizeof(table->name), "%s", name);
}

static void add_poll(struct state_table *table)
{
	int i = add_state(table, "POLL", 0, 0, 1.0);

	table->drv.states[i].flags = CPUIDLE_FLAG_POLLING;
}

static void load_builtin(struct state_table *table, const struct builtin_table *t)
{
	const struct builtin_state *s;

	add_poll(table);
	for (s = t->states; s->name; s++)
		add_state(table, s->name, s->exit_latency_ns,
			  s->target_residency_ns, default_power(s->name));
}

static void load_intel(struct state_table *table, const struct intel_table *t)
{
	const struct intel_state *s;

	add_poll(table);
	for (s = t->states; s->name; s++)
		add_state(table, s->name, s->exit_latency * NSEC_PER_USEC,
			  s->target_residency * NSEC_PER_USEC,
			  default_power(s->name));
}

/* "skx" and "skx_cstates" are the same table. */
static bool intel_name_matches(const char *table, const char *name)
{
	size_t len = strlen(name);

	return !strcmp(table, name) ||
	       (!strncmp(table, name, len) && !strcmp(table + len, "_cstates"));
}

static bool complain(const char *path, unsigned int line, const char *reason)
{
	fprintf(stderr, "%s:%u: %s\n", path, line, reason);
	return false;
}

/* NAME EXIT_LATENCY_NS TARGET_RESIDENCY_NS [power=P] [polling] [disabled] */
static bool parse_state(struct state_table *table, const char *path,
			unsigned int line, char *text)
{
	long long latency, residency;
	char name[CPUIDLE_NAME_LEN];
	double power;
	char *word;
	int i, len;

	if (sscanf(text, "%15s %lld %lld%n", name, &latency, &residency, &len) < 3)
		return complain(path, line, "must be NAME EXIT_LATENCY_NS TARGET_RESIDENCY_NS [power=P] [polling] [disabled]");
	if (latency < 0 || residency < 0)
		return complain(path, line, "times must not be negative");

	i = table->drv.state_count;
	if (i == CPUIDLE_STATE_MAX)
		return complain(path, line, "too many states, must be up to 10");
	if (i && residency < table->drv.states[i - 1].target_residency_ns)
		return complain(path, line, "target residencies must not fall");

	power = default_power(name);
	add_state(table, name, latency, residency, power);
	for (word = strtok(text + len, " \t\n"); word; word = strtok(NULL, " \t\n")) {
		if (!strcmp(word, "polling"))
			table->drv.states[i].flags |= CPUIDLE_FLAG_POLLING;
		else if (!strcmp(word, "disabled"))
			table->disabled[i] = true;
		else if (sscanf(word, "power=%lf", &power) == 1 && power >= 0)
			table->power[i] = power;
		else
			return complain(path, line, "unknown word, must be power=P, polling or disabled");
	}
	return true;
}

static bool load_file(struct state_table *table, const char *path)
{
	unsigned int line = 0;
	char text[256];
	bool good = true;
	FILE *in = fopen(path, "r");

	if (!in) {
		fprintf(stderr, "%s: %s, and no table of that name (--list-states)\n",
			path, strerror(errno));
		return false;
	}
	while (good && fgets(text, sizeof(text), in)) {
		line++;
		if (text[strspn(text, " \t\n")] && text[0] != '#')
			good = parse_state(table, path, line, text);
	}
	fclose(in);

	if (good && !table->drv.state_count)
		return complain(path, line, "has no states");
	return good;
}

/*
 * While it enters and leaves a state, a CPU does no work but takes as much
 * power as if it did: the worst-case exit latency is charged at full power.
 */
static void set_overheads(struct state_table *table)
{
	int i;

	for (i = 0; i < table->drv.state_count; i++)
		table->overhead[i] = table->drv.states[i].exit_latency_ns;
}

/**
 * states_find - load a state table
 * @table: to be filled
 * @name: of a built-in table or one of intel_idle's, else a file
 *
 * Return: false after it said on stderr what is wrong.
 */
bool states_find(struct state_table *table, const char *name)
{
	const struct intel_table *intel;
	size_t i;

	start_table(table, name);
	for (i = 0; i < ARRAY_SIZE(builtin_tables); i++) {
		if (!strcmp(builtin_tables[i].name, name)) {
			load_builtin(table, &builtin_tables[i]);
			set_overheads(table);
			return true;
		}
	}
	for (intel = intel_tables; intel->name; intel++) {
		if (intel_name_matches(intel->name, name)) {
			load_intel(table, intel);
			set_overheads(table);
			return true;
		}
	}
	if (!load_file(table, name))
		return false;

	set_overheads(table);
	return true;
}

void states_list(void)
{
	const struct intel_table *intel;
	const struct intel_state *s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(builtin_tables); i++)
		printf("%-16s %s\n", builtin_tables[i].name, builtin_tables[i].what);
	for (intel = intel_tables; intel->name; intel++) {
		printf("%-16s intel_idle: POLL", intel->name);
		for (s = intel->states; s->name; s++)
			printf(" %s", s->name);
		printf("\n");
	}
}
