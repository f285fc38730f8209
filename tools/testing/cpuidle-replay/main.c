// SPDX-License-Identifier: GPL-2.0
/*
 * governor-replay - replay recorded idle periods through cpuidle governors
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "output.h"

#define EXIT_USAGE	1
#define EXIT_TRACE	2

static const char usage[] =
	"Usage: governor-replay [OPTION]... TRACE...\n"
	"Replay recorded idle periods through cpuidle governors.\n"
	"\n"
	"  --governor NAME      only this one; may be given several times\n"
	"  --states NAME|FILE   state table; may be given several times\n"
	"                       (default: spr-c02, skx, hsx, c1-c6)\n"
	"  --list-states        list the names of state tables and exit\n"
	"  --latency-ns N       latency limit (default: none)\n"
	"  --hz N               tick rate (default: the trace's)\n"
	"  --nohz-full          the tick is always stopped\n"
	"  --exit-latency full|half|PERCENT\n"
	"                       how much of what the driver states it takes to leave\n"
	"                       a state, in time and energy (default: full)\n"
	"  --transition residency|latency\n"
	"                       a state's transition energy is what makes it break\n"
	"                       even at its target residency (default), or its exit\n"
	"                       latency at full power\n"
	"  --overhead-ns N      from the governor's question to the state (default: 1000)\n"
	"  --tick-stop-ns N     to stop the tick (default: 1000)\n"
	"  --tick-restart-ns N  to start it again (default: 1000)\n"
	"  --tick-ns N          the interrupt of a tick (default: 1000)\n"
	"  --json               one JSON object per trace and table\n"
	"  --help               this text\n"
	"\n"
	"Governors: teo, base-teo, base-menu, base-ladder, base-haltpoll, the same\n"
	"four of each tree that the program was built with as NAME-teo and so on, and\n"
	"the bounds least-energy (knows all), oracle (knows the idle time, chooses by\n"
	"target residency) and timer (the next timer alone).\n"
	"Exit status: 0, 1 wrong usage, 2 a trace cannot be read.\n";

#define MAX_PLAYERS	64
#define MAX_TABLES	64

static struct player {
	const char *name;
	int (*init)(void);
	enum bound bound;
	struct cpuidle_governor *gov;
} players[MAX_PLAYERS] = {
	{ .name = "teo", .init = init_teo },
	{ .name = "base-teo", .init = init_base_teo },
	{ .name = "base-menu", .init = init_base_menu },
	{ .name = "base-ladder", .init = init_base_ladder },
	{ .name = "base-haltpoll", .init = init_base_haltpoll },
};
static size_t nr_players = 5;

static void add_player(const struct player *player)
{
	if (nr_players == MAX_PLAYERS) {
		fprintf(stderr, "governor-replay: built with too many trees, must be up to 13\n");
		exit(EXIT_USAGE);
	}
	players[nr_players++] = *player;
}

/* After the base's: those of other trees, then the bounds. */
static void complete_players(void)
{
	static const struct player bounds[] = {
		{ .name = "least-energy", .bound = BOUND_LEAST_ENERGY },
		{ .name = "oracle", .bound = BOUND_ORACLE },
		{ .name = "timer", .bound = BOUND_TIMER },
	};
	const struct tree_governor *t;
	size_t i;

	for (t = tree_governors; t->name; t++)
		add_player(&(struct player) { .name = t->name, .init = t->init });
	for (i = 0; i < ARRAY_SIZE(bounds); i++)
		add_player(&bounds[i]);
}

struct options {
	const struct player *chosen[MAX_PLAYERS];
	const char *names[MAX_PLAYERS];
	size_t nr_chosen;
	struct state_table tables[MAX_TABLES];
	size_t nr_tables;
	s64 tick_ns;		/* 0: the trace's */
	s64 latency_ns;
	s64 latency_percent;
	enum transition_model transition;
	struct costs costs;
	bool nohz_full;
	bool json;
};

static int wrong(const char *what, const char *allowed)
{
	fprintf(stderr, "governor-replay: %s, must be %s\n", what, allowed);
	return EXIT_USAGE;
}

static int choose(struct options *opt, const char *name)
{
	size_t i, k;

	for (i = 0; i < nr_players && strcmp(players[i].name, name); i++)
		;
	if (i == nr_players) {
		fprintf(stderr, "governor-replay: unknown governor %s, must be", name);
		for (i = 0; i < nr_players; i++)
			fprintf(stderr, "%s %s", i ? "," : "", players[i].name);
		fputc('\n', stderr);
		return EXIT_USAGE;
	}

	for (k = 0; k < opt->nr_chosen; k++)
		if (opt->chosen[k] == &players[i])
			return 0;
	opt->names[opt->nr_chosen] = players[i].name;
	opt->chosen[opt->nr_chosen++] = &players[i];
	return 0;
}

static int add_table(struct options *opt, const char *name)
{
	if (opt->nr_tables == MAX_TABLES)
		return wrong("too many state tables", "up to 64");
	return states_find(&opt->tables[opt->nr_tables++], name) ? 0 : EXIT_USAGE;
}

static int set_number(s64 *number, const char *text, s64 least, s64 most,
		      const char *what, const char *allowed)
{
	char *end;

	errno = 0;
	*number = strtoll(text, &end, 10);
	if (errno || end == text || *end || *number < least || *number > most)
		return wrong(what, allowed);
	return 0;
}

static int set_time(s64 *number, const char *text, const char *what)
{
	return set_number(number, text, 0, NSEC_PER_SEC, what, "ns from 0 to 1000000000");
}

static int set_hz(struct options *opt, const char *text)
{
	s64 hz;
	int err = set_number(&hz, text, 1, 1000000, "wrong --hz", "from 1 to 1000000");

	if (!err)
		opt->tick_ns = NSEC_PER_SEC / hz;
	return err;
}

static int set_share(struct options *opt, const char *text)
{
	opt->latency_percent = !strcmp(text, "full") ? 100 : 50;
	if (!strcmp(text, "full") || !strcmp(text, "half"))
		return 0;
	return set_number(&opt->latency_percent, text, 1, 200, "wrong --exit-latency",
			  "full, half or percent from 1 to 200");
}

static int set_transition(struct options *opt, const char *text)
{
	if (!strcmp(text, "residency"))
		opt->transition = TRANSITION_RESIDENCY;
	else if (!strcmp(text, "latency"))
		opt->transition = TRANSITION_LATENCY;
	else
		return wrong("wrong --transition", "residency or latency");
	return 0;
}

static int parse_options(struct options *opt, int argc, char **argv)
{
	enum {
		GOVERNOR = 1, STATES, LIST, LATENCY, HZ, NOHZ_FULL, SHARE, TRANSITION,
		OVERHEAD, TICK_STOP, TICK_RESTART, TICK, JSON, HELP
	};
	static const struct option longs[] = {
		{ "governor", required_argument, NULL, GOVERNOR },
		{ "states", required_argument, NULL, STATES },
		{ "list-states", no_argument, NULL, LIST },
		{ "latency-ns", required_argument, NULL, LATENCY },
		{ "hz", required_argument, NULL, HZ },
		{ "nohz-full", no_argument, NULL, NOHZ_FULL },
		{ "exit-latency", required_argument, NULL, SHARE },
		{ "transition", required_argument, NULL, TRANSITION },
		{ "overhead-ns", required_argument, NULL, OVERHEAD },
		{ "tick-stop-ns", required_argument, NULL, TICK_STOP },
		{ "tick-restart-ns", required_argument, NULL, TICK_RESTART },
		{ "tick-ns", required_argument, NULL, TICK },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 }
	};
	int c, err = 0;

	while (!err && (c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case GOVERNOR:
			err = choose(opt, optarg);
			break;
		case STATES:
			err = add_table(opt, optarg);
			break;
		case LATENCY:
			err = set_number(&opt->latency_ns, optarg, 0, S64_MAX,
					 "wrong --latency-ns", "ns from 0");
			break;
		case HZ:
			err = set_hz(opt, optarg);
			break;
		case NOHZ_FULL:
			opt->nohz_full = true;
			break;
		case SHARE:
			err = set_share(opt, optarg);
			break;
		case TRANSITION:
			err = set_transition(opt, optarg);
			break;
		case OVERHEAD:
			err = set_time(&opt->costs.overhead, optarg, "wrong --overhead-ns");
			break;
		case TICK_STOP:
			err = set_time(&opt->costs.tick_stop, optarg, "wrong --tick-stop-ns");
			break;
		case TICK_RESTART:
			err = set_time(&opt->costs.tick_restart, optarg, "wrong --tick-restart-ns");
			break;
		case TICK:
			err = set_time(&opt->costs.tick, optarg, "wrong --tick-ns");
			break;
		case JSON:
			opt->json = true;
			break;
		case LIST:
			states_list();
			exit(0);
		case HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			err = EXIT_USAGE;
		}
	}
	return err;
}

static int set_defaults(struct options *opt)
{
	static const char *const tables[] = { "spr-c02", "skx", "hsx", "c1-c6" };
	size_t i;
	int err = 0;

	if (!opt->nr_chosen)
		for (i = 0; i < nr_players; i++)
			choose(opt, players[i].name);
	if (!opt->nr_tables)
		for (i = 0; !err && i < ARRAY_SIZE(tables); i++)
			err = add_table(opt, tables[i]);
	for (i = 0; i < opt->nr_tables; i++)
		states_price(&opt->tables[i], opt->transition);
	return err;
}

static void start_governors(void)
{
	size_t i;

	for (i = 0; i < nr_players; i++) {
		if (!players[i].init)
			continue;
		players[i].init();
		players[i].gov = emulate_registered;
	}
}

static void replay_one(const struct options *opt, const struct trace *trace,
		       const struct state_table *table, struct row *rows)
{
	struct run run = {
		.trace = trace,
		.table = table,
		.tick_ns = opt->tick_ns ?: trace->tick_ns,
		.latency_ns = opt->latency_ns,
		.latency_percent = opt->latency_percent,
		.costs = opt->costs,
		.nohz_full = opt->nohz_full,
	};
	struct result least;
	size_t g;

	run.play = bound_run;
	run.bound = BOUND_LEAST_ENERGY;
	engine_run(&run, &least);

	for (g = 0; g < opt->nr_chosen; g++) {
		run.play = opt->chosen[g]->bound ? bound_run : governor_run;
		run.gov = opt->chosen[g]->gov;
		run.bound = opt->chosen[g]->bound;
		engine_run(&run, &rows[g].res);
		rows[g].least = least;
	}
}

static int replay(const struct options *opt, const struct trace *traces, size_t nr)
{
	struct report rep = {
		.traces = traces,
		.nr_traces = nr,
		.tables = opt->tables,
		.nr_tables = opt->nr_tables,
		.governors = opt->names,
		.nr_governors = opt->nr_chosen,
	};
	size_t t, s;

	rep.rows = calloc(nr * rep.nr_tables * rep.nr_governors, sizeof(*rep.rows));
	if (!rep.rows)
		return wrong("out of memory", "fewer traces");

	start_governors();
	for (t = 0; t < nr; t++)
		for (s = 0; s < rep.nr_tables; s++)
			replay_one(opt, &traces[t], &opt->tables[s],
				   row_of(&rep, t, s));

	if (opt->json)
		print_json(&rep);
	else
		print_table(&rep);
	free(rep.rows);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options opt = {
		/* PM QoS without a request: S32_MAX us. */
		.latency_ns = (s64)INT_MAX * NSEC_PER_USEC,
		.latency_percent = 100,
		/* README.md tells where these come from. */
		.costs = {
			.overhead = 1000, .tick_stop = 1000,
			.tick_restart = 1000, .tick = 1000,
		},
	};
	struct trace *traces;
	int err, i, nr;

	complete_players();
	err = parse_options(&opt, argc, argv);
	if (!err)
		err = set_defaults(&opt);
	if (err)
		return err;

	nr = argc - optind;
	if (nr < 1)
		return wrong("no trace given", "one or more files (--help)");

	/* All are read first: no table is printed if one of them is malformed. */
	traces = calloc(nr, sizeof(*traces));
	if (!traces)
		return wrong("out of memory", "fewer traces");
	for (i = 0; i < nr; i++)
		if (!trace_read(&traces[i], argv[optind + i]))
			return EXIT_TRACE;

	err = replay(&opt, traces, nr);
	for (i = 0; i < nr; i++)
		trace_free(&traces[i]);
	free(traces);
	return err;
}
