// SPDX-License-Identifier: GPL-2.0
/*
 * State tables: the ones that the results are stated for, every table of
 * intel_idle.c under its name there, what ACPI gives on AMD's, and files.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "replay.h"

/*
 * Powers relative to polling, assumed but for C0.x and AMD's. They are not those
 * of any CPU; what matters is that they fall about as much from state to state
 * as they do there. README.md has the sources.
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

/* AMD EPYC 7502: a polling core takes 0.33 W more than one in C2, C1 0.09 W. */
static const double amd_c1_power = 0.09 / 0.33;
static const double amd_c2_power = 0.02;

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
	{ "amd-rome", "EPYC 7502, ACPI", {
		{ "C1", 1000, 2000 }, { "C2", 400000, 800000 } } },
	{ "amd-milan", "EPYC 7543, ACPI", {
		{ "C1", 1000, 2000 }, { "C2", 30000, 60000 } } },
	{ "amd-genoa", "EPYC 9354, ACPI", {
		{ "C1", 1000, 2000 }, { "C2", 800000, 1600000 } } },
	{ "amd-turin", "EPYC 9555, ACPI", {
		{ "C1", 1000, 2000 }, { "C2", 100000, 200000 } } },
	{ "acpi-cml", "Core i5-10600K, what intel_idle makes of its _CST", {
		{ "C1_ACPI", 1000, 1000 }, { "C2_ACPI", 120000, 360000 },
		{ "C3_ACPI", 1034000, 3102000 } } },
	{ "acpi-icl", "Core i7-1065G7 and i7-1185G7, likewise", {
		{ "C1_ACPI", 1000, 1000 }, { "C2_ACPI", 253000, 759000 },
		{ "C3_ACPI", 1048000, 3144000 } } },
	{ "acpi-arl", "Arrow, Lunar and Panther Lake, likewise", {
		{ "C1_ACPI", 1000, 1000 }, { "C2_ACPI", 127000, 381000 },
		{ "C3_ACPI", 1048000, 3144000 } } },
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
	for (s = t->states; s->name; s++) {
		double power = default_power(s->name);

		if (!strncmp(t->name, "amd-", 4))
			power = s == t->states ? amd_c1_power : amd_c2_power;
		add_state(table, s->name, s->exit_latency_ns,
			  s->target_residency_ns, power);
	}
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
	if (table->power[i] > (i ? table->power[i - 1] : 1))
		return complain(path, line, "power must not rise, and is 1 at most");
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

/**
 * states_price - tell what it takes to enter and leave each state
 * @table: the table
 * @model: from what that follows
 *
 * The target residency T is where the driver sees the state break even with the
 * next shallower one (the first, if it does not poll, with polling). Of power and
 * transition energy one follows from the other then:
 *
 *	P[i] T + E[i] = P[i - 1] T + E[i - 1]
 *
 * The other model charges the exit latency at full power. It does not agree with
 * the target residencies, and tells how much the results depend on them.
 */
void states_price(struct state_table *table, enum transition_model model)
{
	double power = 1, energy = 0;
	int i;

	for (i = 0; i < table->drv.state_count; i++) {
		const struct cpuidle_state *s = &table->drv.states[i];

		energy += (power - table->power[i]) * s->target_residency_ns;
		power = table->power[i];
		table->transition[i] = model == TRANSITION_RESIDENCY ?
				       energy : s->exit_latency_ns;
	}
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
			return true;
		}
	}
	for (intel = intel_tables; intel->name; intel++) {
		if (intel_name_matches(intel->name, name)) {
			load_intel(table, intel);
			return true;
		}
	}
	return load_file(table, name);
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
