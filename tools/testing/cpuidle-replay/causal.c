// SPDX-License-Identifier: GPL-2.0
/*
 * What is possible without knowledge of the future, about: a predictor that no kernel could
 * afford.
 *
 * Time since the entry is cut into bins, four per octave. For each bin the chance that something
 * other than the timer comes in it, if nothing came before (hazard), is learned in several
 * contexts: what the last idle times were and how they ended, who woke the CPU, how long it was
 * busy, when the next timer is due. Logistic mixing weighs the contexts, with weights that are
 * learned as well. Of the states, and of stopping the tick or not, what is expected to cost the
 * least is taken; ticks are looked ahead.
 *
 * It begins each trace knowing nothing. So a governor could be better, by little: more contexts
 * did not help.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "replay.h"

#define OCTAVE		4
#define BINS		72
#define FIRST_NS	500.0
#define HASH_BITS	14
#define CONTEXTS	13
#define INPUTS		(2 * CONTEXTS)
#define HISTORY		4
#define RATE		0.01f
#define TICKS_AHEAD	4

/* Hazards of a context, as means over about 13 and about 250 events. */
struct hazards {
	float quick[BINS], slow[BINS];
	unsigned char events[BINS];
};

/* An idle time that is over, as contexts have it. */
struct past {
	s64 idle;
	int end, src, irq;
};

static struct hazards *hazards[CONTEXTS];
static float weight[BINS][INPUTS + 1][4];

/* Of each period: the chance that nothing but the timer comes up to each edge. */
static double edge[BINS + 1];
static float (*survival)[BINS + 1];
/* And that a task waits for what comes, and for the timer. */
static float (*waiting)[2];

static float stretch(float p)
{
	return logf(p / (1 - p));
}

static float squash(float x)
{
	return 1 / (1 + expf(-x));
}

static int bin(s64 ns)
{
	return ns < FIRST_NS ? 0 : min((int)(log2(ns / FIRST_NS) * OCTAVE) + 1, BINS - 1);
}

/* A logarithm, with so many steps per octave of us. */
static int steps(s64 ns, int per_octave, int most)
{
	return ns < 1000 ? 0 : min((int)(log2(ns / 1000.0) * per_octave) + 1, most - 1);
}

static struct hazards *find(int context, u64 key)
{
	u64 x = (key * 16 + context) * 0x9E3779B97F4A7C15ull;

	x ^= x >> 29;
	x *= 0xBF58476D1CE4E5B9ull;
	return &hazards[context][x >> (64 - HASH_BITS)];
}

static void find_all(struct hazards **found, const struct idle_period *p,
		     const struct past *past, s64 busy, s64 long_ago, int short_ones)
{
	bool goes_on = p->flags & FLAG_CONTINUES;
	u64 m[HISTORY], all = 0, first = past[0].end;
	int sleep = steps(p->sleep, 2, 32), i;

	for (i = HISTORY; i-- > 0; ) {
		m[i] = steps(past[i].idle, 1, 16);
		all = all * 64 + m[i] * 4 + past[i].end;
	}
	found[0] = find(0, 0);
	found[1] = find(1, first + 4 * steps(past[0].idle, 2, 32) + 256 * goes_on);
	found[2] = find(2, first + 4 * (m[0] + 16 * m[1]));
	found[3] = find(3, m[0] + 16 * (m[1] + 16 * m[2]));
	found[4] = find(4, past[0].src + 256 * (past[0].irq + 1024 * m[0]));
	found[5] = find(5, sleep + 32 * first);
	found[6] = find(6, sleep / 2 + 16 * (m[0] + 16 * first));
	found[7] = find(7, steps(busy, 2, 32) + 32 * (m[0] + 16 * goes_on));
	found[8] = find(8, all);
	found[9] = find(9, min(short_ones, 63));
	found[10] = find(10, past[0].src + 256 * (past[1].src + 256ull *
			 (past[0].irq + 1024ull * past[1].irq)));
	found[11] = find(11, steps(p->entry - long_ago, 2, 32) + 32 * m[0]);
	found[12] = find(12, steps(past[0].idle, 4, 64) + 64 * steps(past[1].idle, 2, 32));
}

static float clip(float p)
{
	return min(max(p, 0.0005f), 0.9995f);
}

static void learn(struct hazards *h, int b, bool here)
{
	int n = min(h->events[b] + 1, 250);

	h->events[b] = n;
	h->quick[b] = clip(h->quick[b] + (here - h->quick[b]) / min(n + 1.5f, 13.5f));
	h->slow[b] = clip(h->slow[b] + (here - h->slow[b]) / (n + 1.5f));
}

/* Predict a period's hazards and learn from what came. @last: the bin in which it ended. */
static void predict(struct hazards **found, float *left, int last, bool timer)
{
	int b, c;

	left[0] = 1;
	for (b = 0; b < BINS; b++) {
		float in[INPUTS], sum = weight[b][INPUTS][0], p, error;
		int sure[CONTEXTS];

		for (c = 0; c < CONTEXTS; c++) {
			int n = found[c]->events[b];

			sure[c] = n < 2 ? 0 : n < 8 ? 1 : n < 40 ? 2 : 3;
			in[2 * c] = n ? stretch(found[c]->quick[b]) : 0;
			in[2 * c + 1] = n ? stretch(found[c]->slow[b]) : 0;
			sum += weight[b][2 * c][sure[c]] * in[2 * c] +
			       weight[b][2 * c + 1][sure[c]] * in[2 * c + 1];
		}
		p = squash(min(max(sum, -15.0f), 15.0f));
		left[b + 1] = left[b] * (1 - p);
		if (b > last || (timer && b == last))
			continue;	/* what would have come then is not known */

		error = (b == last) - p;
		for (c = 0; c < CONTEXTS; c++) {
			weight[b][2 * c][sure[c]] += RATE * error * in[2 * c];
			weight[b][2 * c + 1][sure[c]] += RATE * error * in[2 * c + 1];
			learn(found[c], b, b == last);
		}
		weight[b][INPUTS][0] += RATE * error;
	}
}

static void forget(const struct trace *trace)
{
	int b, c, i, n;

	for (b = 0; b <= BINS; b++)
		edge[b] = b ? FIRST_NS * pow(2, (b - 1.0) / OCTAVE) : 0;
	for (c = 0; c < CONTEXTS; c++) {
		free(hazards[c]);
		hazards[c] = calloc(1 << HASH_BITS, sizeof(struct hazards));
	}
	for (b = 0; b < BINS; b++)
		for (i = 0; i <= INPUTS; i++)
			for (n = 0; n < 4; n++)
				weight[b][i][n] = i == INPUTS ? 0 : n ? 0.045f : 0.02f;
	free(survival);
	free(waiting);
	survival = calloc(trace->nr, sizeof(*survival));
	waiting = calloc(trace->nr, sizeof(*waiting));
	if (!survival || !waiting || !hazards[CONTEXTS - 1]) {
		fprintf(stderr, "governor-replay: out of memory\n");
		exit(1);
	}
}

/* All that is predicted depends on the past alone: it is done once per trace. */
static void predict_all(const struct trace *trace)
{
	struct past past[HISTORY] = { 0 };
	float waits[2] = { 0.5, 0.5 };
	s64 end = 0, long_ago = 0;
	int short_ones = 0, i;
	size_t n;

	forget(trace);
	for (n = 0; n < trace->nr; n++) {
		const struct idle_period *p = &trace->periods[n];
		bool timer = p->sleep != KTIME_MAX && p->idle >= p->sleep - p->sleep / 64 - 2000;
		struct hazards *found[CONTEXTS];

		find_all(found, p, past, n ? p->entry - end : 0, long_ago, short_ones);
		predict(found, survival[n], bin(timer ? p->sleep : p->idle), timer);
		memcpy(waiting[n], waits, sizeof(waits));

		for (i = HISTORY; --i; )
			past[i] = past[i - 1];
		past[0] = (struct past) { p->idle, timer ? 1 : 2, p->src, p->irq & 1023 };
		waits[timer] += (!!(p->flags & FLAG_TASK) - waits[timer]) / 32;
		end = p->entry + p->idle;
		short_ones = p->idle > 500000 ? 0 : short_ones + 1;
		long_ago = p->idle > 500000 ? end : long_ago;
	}
}

/* The period at hand, and what is looked at. */
struct outlook {
	const struct run *run;
	const float *left, *waits;
	double sleep;		/* from the entry, as all times here */
};

static double left_at(const struct outlook *o, double ns)
{
	int b = bin(ns);
	double part;

	if (b >= BINS - 1)
		return o->left[BINS - 1];
	part = (ns - edge[b]) / (edge[b + 1] - edge[b]);
	return o->left[b] + (o->left[b + 1] - o->left[b]) * part;
}

/* The rest from @from until @until or what comes before, if nothing came up to @from. */
static double mean_rest(const struct outlook *o, double from, double until, double *reach)
{
	double first = max(left_at(o, from), 1e-9), level = 1, sum = 0;
	int b = bin(from) + 1;

	while (from < until) {
		double to = b <= BINS - 1 ? min(edge[b], until) : until;
		double then = left_at(o, to) / first;

		sum += (to - from) * (level + then) / 2;
		level = then;
		from = to;
		b++;
	}
	*reach = level;
	return sum;
}

/* The state that is expected to cost least, and the cost. */
static double cheapest(const struct outlook *o, double from, double until, int *state,
		       double *reach)
{
	double mean = mean_rest(o, from, until, reach), least = INFINITY;
	double waits = (1 - *reach) * o->waits[0] + (until >= o->sleep ? *reach * o->waits[1] : 0);
	int i;

	*state = 0;
	for (i = 0; i < o->run->table->drv.state_count; i++) {
		double cost = engine_rest_cost(o->run, i, mean, o->run->price * waits);

		if (engine_usable(o->run, i) && cost < least) {
			least = cost;
			*state = i;
		}
	}
	return least + o->run->costs.overhead;
}

/* The same where the tick may be stopped. @tick: when the next is due. */
static double look_ahead(const struct outlook *o, double from, double tick, int ahead,
			 int *state, bool *stop)
{
	double stopped, kept, reach;
	int if_kept, later;
	bool then;

	stopped = cheapest(o, from, o->sleep, state, &reach) + o->run->costs.tick_stop +
		  o->run->costs.tick_restart;
	kept = cheapest(o, from, min(tick, o->sleep), &if_kept, &reach);
	if (tick < o->sleep) {
		double more = ahead ? look_ahead(o, tick, tick + o->run->tick_ns, ahead - 1,
						 &later, &then)
				    : cheapest(o, tick, o->sleep, &later, &(double){ 0 });

		kept += reach * (o->run->costs.tick + more);
	}
	*stop = stopped < kept;
	if (!*stop)
		*state = if_kept;
	return min(stopped, kept);
}

static int causal_select(struct cpuidle_driver *drv, struct cpuidle_device *dev, bool *stop_tick)
{
	const struct idle_period *p = emu.period;
	const struct run *run = emu.run;
	size_t n = p - run->trace->periods;
	double from = max(emu.idle_entry - p->entry, 0), reach;
	struct outlook o = {
		.run = run,
		.left = survival[n],
		.waits = waiting[n],
		.sleep = max(p->sleep == KTIME_MAX ? 1e9 : p->sleep, from + 1000),
	};
	double tick = emu.next_tick - p->entry;
	int state;

	*stop_tick = emu.tick_stopped;
	if (emu.tick_stopped)
		cheapest(&o, from, o.sleep, &state, &reach);
	else if (!emu.can_stop_tick)
		cheapest(&o, from, min(tick, o.sleep), &state, &reach);
	else
		look_ahead(&o, from, tick, TICKS_AHEAD, &state, stop_tick);
	return state;
}

static int causal_enable(struct cpuidle_driver *drv, struct cpuidle_device *dev)
{
	static const struct trace *known;

	if (known != emu.run->trace)
		predict_all(emu.run->trace);
	known = emu.run->trace;
	return 0;
}

static struct cpuidle_governor causal = {
	.name = "causal",
	.enable = causal_enable,
	.select = causal_select,
};

int init_causal(void)
{
	return cpuidle_register_governor(&causal);
}
