// SPDX-License-Identifier: GPL-2.0
/*
 * governor-replay - replay recorded idle periods through cpuidle governors
 */
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
	"  --exit-latency full|half\n"
	"                       how much of its worst-case exit latency a wake-up\n"
	"                       takes (default: full)\n"
	"  --json               one JSON object per trace and table\n"
	"  --summary            only the mean over the traces\n"
	"  --speed              also decisions per second and timer queries\n"
	"  --help               this text\n"
	"\n"
	"Governors: teo, base-teo, base-menu, base-ladder, base-haltpoll, and the\n"
	"bounds oracle (knows the idle time) and timer (the next timer alone).\n"
	"Exit status: 0, 1 wrong usage, 2 a trace cannot be read.\n";

static struct player {
	const char *name;
	int (*init)(void);
	struct cpuidle_governor *gov;
} players[] = {
	{ "teo", init_teo, NULL },
	{ "base-teo", init_base_teo, NULL },
	{ "base-menu", init_base_menu, NULL },
	{ "base-ladder", init_base_ladder, NULL },
	{ "base-haltpoll", init_base_haltpoll, NULL },
	{ "oracle", NULL, NULL },
	{ "timer", NULL, NULL },
};

#define NR_PLAYERS	ARRAY_SIZE(players)
#define MAX_TABLES	64

struct options {
	const struct player *chosen[NR_PLAYERS];
	const char *names[NR_PLAYERS];
	size_t nr_chosen;
	struct state_table tables[MAX_TABLES];
	size_t nr_tables;
	s64 latency_ns;
	unsigned int latency_share;
	bool json, summary, speed;
};

static int wrong(const char *what, const char *allowed)
{
	fprintf(stderr, "governor-replay: %s, must be %s\n", what, allowed);
	return EXIT_USAGE;
}

static int choose(struct options *opt, const char *name)
{
	size_t i, k;

	for (i = 0; i < NR_PLAYERS && strcmp(players[i].name, name); i++)
		;
	if (i == NR_PLAYERS)
		return wrong("unknown governor", "teo, base-teo, base-menu, base-ladder, base-haltpoll, oracle or timer");

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

static int set_latency(struct options *opt, const char *text)
{
	char *end;

	opt->latency_ns = strtoll(text, &end, 10);
	if (end == text || *end || opt->latency_ns < 0)
		return wrong("wrong --latency-ns", "a number of ns from 0");
	return 0;
}

static int set_share(struct options *opt, const char *text)
{
	if (!strcmp(text, "full"))
		opt->latency_share = LATENCY_FULL;
	else if (!strcmp(text, "half"))
		opt->latency_share = LATENCY_HALF;
	else
		return wrong("wrong --exit-latency", "full or half");
	return 0;
}

static int parse_options(struct options *opt, int argc, char **argv)
{
	enum { GOVERNOR = 1, STATES, LIST, LATENCY, SHARE, JSON, SUMMARY, SPEED, HELP };
	static const struct option longs[] = {
		{ "governor", required_argument, NULL, GOVERNOR },
		{ "states", required_argument, NULL, STATES },
		{ "list-states", no_argument, NULL, LIST },
		{ "latency-ns", required_argument, NULL, LATENCY },
		{ "exit-latency", required_argument, NULL, SHARE },
		{ "json", no_argument, NULL, JSON },
		{ "summary", no_argument, NULL, SUMMARY },
		{ "speed", no_argument, NULL, SPEED },
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
			err = set_latency(opt, optarg);
			break;
		case SHARE:
			err = set_share(opt, optarg);
			break;
		case JSON:
			opt->json = true;
			break;
		case SUMMARY:
			opt->summary = true;
			break;
		case SPEED:
			opt->speed = true;
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

	for (i = 0; !opt->nr_chosen && i < NR_PLAYERS; i++) {
		opt->chosen[i] = &players[i];
		opt->names[i] = players[i].name;
	}
	if (!opt->nr_chosen)
		opt->nr_chosen = NR_PLAYERS;

	if (opt->nr_tables)
		return 0;
	for (i = 0; !err && i < ARRAY_SIZE(tables); i++)
		err = add_table(opt, tables[i]);
	return err;
}

static void start_governors(void)
{
	size_t i;

	for (i = 0; i < NR_PLAYERS; i++) {
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
		.latency_ns = opt->latency_ns,
		.latency_share = opt->latency_share,
	};
	struct result oracle;
	size_t g;

	run.oracle = true;
	engine_run(&run, &oracle);

	for (g = 0; g < opt->nr_chosen; g++) {
		run.name = opt->chosen[g]->name;
		run.gov = opt->chosen[g]->gov;
		run.oracle = !strcmp(run.name, "oracle");
		engine_run(&run, &rows[g].res);
		rows[g].oracle = oracle;
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
		.summary = opt->summary,
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
	if (opt->speed && !opt->json)
		print_speed(&rep);
	free(rep.rows);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options opt = {
		/* PM QoS without a request: S32_MAX us. */
		.latency_ns = (s64)INT_MAX * NSEC_PER_USEC,
		.latency_share = LATENCY_FULL,
	};
	struct trace *traces;
	int err, i, nr;

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
