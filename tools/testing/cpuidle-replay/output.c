// SPDX-License-Identifier: GPL-2.0
/*
 * Results as a table for people and as JSON for programs.
 */
#include <stdio.h>

#include "output.h"

static double percent(u64 part, u64 whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static double per_decision(double sum, u64 decisions)
{
	return decisions ? sum / decisions : 0;
}

struct row *row_of(const struct report *rep, size_t trace, size_t table)
{
	return &rep->rows[(trace * rep->nr_tables + table) * rep->nr_governors];
}

/* Energy relative to the least, which each report has computed. */
static double relative_energy(const struct result *res, const struct result *least)
{
	return least->energy > 0 ? res->energy / least->energy : 1;
}

static void print_heading(void)
{
	printf("%-22s %-14s %9s %9s %9s %9s %8s %10s %9s %9s\n",
	       "trace", "governor", "decisions", "too deep%", "adequate%",
	       "shallow%", "energy", "exit us/wk", "ticks", "stops");
}

static void print_line(const char *trace, const char *governor, u64 decisions,
		       const double *v, u64 ticks, u64 stops)
{
	printf("%-22s %-14s %9llu %9.2f %9.2f %9.2f %8.3f %10.2f %9llu %9llu\n",
	       trace, governor, decisions, v[0], v[1], v[2], v[3], v[4], ticks,
	       stops);
}

static void derive(double *v, const struct row *row)
{
	const struct result *res = &row->res;

	v[0] = percent(res->too_deep, res->decisions);
	v[1] = percent(res->adequate, res->decisions);
	v[2] = percent(res->too_shallow, res->decisions);
	v[3] = relative_energy(res, &row->least);
	v[4] = per_decision(res->wake_latency_ns / 1000.0, res->periods);
}

/* Each trace weighs the same, however many periods it has. */
static void print_mean(const struct report *rep, size_t table, size_t gov)
{
	u64 decisions = 0, ticks = 0, stops = 0;
	double mean[5] = { 0 };
	size_t t, i;

	for (t = 0; t < rep->nr_traces; t++) {
		const struct row *row = row_of(rep, t, table) + gov;
		double v[5];

		derive(v, row);
		for (i = 0; i < 5; i++)
			mean[i] += v[i] / rep->nr_traces;
		decisions += row->res.decisions;
		ticks += row->res.ticks;
		stops += row->res.tick_stops;
	}
	print_line("mean over traces", rep->governors[gov], decisions, mean,
		   ticks, stops);
}

static void print_states(const struct state_table *table)
{
	int i;

	printf("\n%s:", table->name);
	for (i = 0; i < table->drv.state_count; i++)
		printf(" %s %g/%g%s", table->drv.states[i].name,
		       table->drv.states[i].exit_latency_ns / 1000.0,
		       table->drv.states[i].target_residency_ns / 1000.0,
		       table->disabled[i] ? " (disabled)" : "");
	printf(" (exit latency/target residency in us)\n");
}

void print_table(const struct report *rep)
{
	size_t table, t, g;
	double v[5];

	for (table = 0; table < rep->nr_tables; table++) {
		print_states(&rep->tables[table]);
		print_heading();
		for (t = 0; t < rep->nr_traces; t++) {
			for (g = 0; g < rep->nr_governors; g++) {
				const struct row *row = row_of(rep, t, table) + g;

				derive(v, row);
				print_line(rep->traces[t].name, rep->governors[g],
					   row->res.decisions, v, row->res.ticks,
					   row->res.tick_stops);
			}
		}
		for (g = 0; rep->nr_traces > 1 && g < rep->nr_governors; g++)
			print_mean(rep, table, g);
	}
}

/* Names come from file names: whatever JSON does not take as it is. */
static void print_string(const char *text)
{
	const unsigned char *c;

	putchar('"');
	for (c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < ' ')
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void print_result(const struct result *res)
{
	printf("{\"decisions\":%llu,\"too_deep\":%llu,\"adequate\":%llu,"
	       "\"too_shallow\":%llu,\"energy\":%.17g,\"exit_latency_ns\":%llu,"
	       "\"ticks\":%llu,\"idle_ns\":%llu,\"tick_stops\":%llu,"
	       "\"timer_queries\":%llu,\"least\":%llu,\"periods\":%llu,"
	       "\"wake_latency_ns\":%llu,\"waits\":%llu,\"wait_latency_ns\":%llu}",
	       res->decisions, res->too_deep, res->adequate, res->too_shallow,
	       res->energy, res->exit_latency_ns, res->ticks, res->idle_ns,
	       res->tick_stops, res->timer_queries, res->least, res->periods,
	       res->wake_latency_ns, res->waits, res->wait_latency_ns);
}

void print_json(const struct report *rep)
{
	size_t t, table, g;

	for (t = 0; t < rep->nr_traces; t++) {
		for (table = 0; table < rep->nr_tables; table++) {
			const struct row *row = row_of(rep, t, table);

			printf("{\"trace\":");
			print_string(rep->traces[t].name);
			printf(",\"states\":");
			print_string(rep->tables[table].name);
			printf(",\"governors\":{");
			for (g = 0; g < rep->nr_governors; g++) {
				printf(g ? "," : "");
				print_string(rep->governors[g]);
				putchar(':');
				print_result(&row[g].res);
			}
			printf("}}\n");
		}
	}
}
