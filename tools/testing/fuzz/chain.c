// SPDX-License-Identifier: GPL-2.0
/* Chains: tasks that wake each other in any order, for any time, at any capacity */
#include <math.h>

#include "fuzz.h"
#include "chain.h"

#define TASKS	4

static void decays(u32 share, u32 time)
{
	u32 is = chain_decay(share, time);
	double wanted = share * exp2(-(double)time / CHAIN_HALF);
	double halved = share * exp2(-(double)(time >> CHAIN_HALF_SHIFT));

	PROPERTY(is <= share);
	PROPERTY(fabs(is - wanted) <= 0.005 * halved + 2);
	PROPERTY(time == U32_MAX || chain_decay(share, time + 1) <= is + 1);
}

static void count(struct sched_chain *c, u32 slack, u32 capacity)
{
	struct sched_chain old = *c;

	if (!chain_counts(c, slack)) {
		PROPERTY(!slack && c->ran < CHAIN_GRAIN);
		return;
	}
	chain_count(c, slack, capacity);
	PROPERTY(c->time == old.time && !c->ran);
	PROPERTY(c->util <= CHAIN_FULL && c->lag <= CHAIN_LAG);
	if (!slack)
		PROPERTY(c->util >= old.util);
	if (!old.ran)
		PROPERTY(c->util <= old.util);
}

/* Of how much of the time since does the chain know? */
static u32 passed(const struct sched_chain *old, const struct sched_chain *c, u64 now)
{
	u64 time = now > old->time ? now - old->time : 0;

	PROPERTY(c->time == old->time + time);
	if (time < CHAIN_GONE)
		return time;
	PROPERTY(!c->loop && !c->issued && !c->util);
	return CHAIN_GONE;
}

static void woken(struct sched_chain *w, u64 now, u32 capacity)
{
	struct sched_chain old = *w;
	u32 slack = chain_woken(w, now);
	u32 slept = passed(&old, w, now);

	PROPERTY(!w->handed);
	PROPERTY(w->ran == old.ran + slept - min(slack, slept));
	PROPERTY(w->rest == old.rest + (old.handed ? 0 : slept));
	/* Only a loop makes work of sleep */
	if (!old.handed || !old.loop)
		PROPERTY(slack == slept);
	count(w, slack, capacity);
}

static void ran(struct sched_chain *c, u64 now, u32 exec, u32 capacity)
{
	struct sched_chain old = *c;
	u32 slack = chain_run(c, now, exec);

	PROPERTY(c->exec == exec);
	PROPERTY(c->ran + slack == old.ran + passed(&old, c, now) && c->rest == old.rest + slack);
	/* Nobody works for longer than it runs. */
	PROPERTY(c->ran - old.ran <= exec - old.exec + CHAIN_WAKE);
	count(c, slack, capacity);
}

static void hand(struct sched_chain *w, struct sched_chain *from)
{
	struct sched_chain old = *w;
	s32 ahead = from->clock - old.clock;
	bool near = ahead >= -1 && ahead < CHAIN_LENGTH;

	if (chain_hand(w, from->rest, from->clock)) {
		from->issued = true;
		PROPERTY(w->rest == from->rest && w->clock == from->clock + 1);
	} else {
		PROPERTY(w->rest == old.rest && w->clock == old.clock);
		PROPERTY(!near && old.loop);
	}
	PROPERTY(w->loop <= old.loop || (near && ahead > 0 && old.issued));
	PROPERTY(w->util == old.util && w->time == old.time);
}

static void one(struct input *in)
{
	struct sched_chain tasks[TASKS] = {};
	u64 now = take(in, 4);
	u32 execs[TASKS] = {};

	decays(take(in, 4) % (CHAIN_FULL + 1), take_any(in, 32));
	for (int i = 0; i < TASKS; i++)
		tasks[i].time = now;

	while (in->at < in->end) {
		u8 what = take(in, 1);
		int who = what >> 2 & 3;
		struct sched_chain *c = &tasks[who], *by = &tasks[what >> 4 & 3];
		u32 capacity = take_below(in, 1025);

		now += take_any(in, 24 + 8 * (what >> 7));
		PROPERTY(chain_need(c, capacity) <= CHAIN_OWN * capacity);
		switch (what & 3) {
		case 0:
			if (c != by)
				hand(c, by);
			woken(c, now, capacity);
			break;
		case 1:
			woken(c, now, capacity);
			break;
		default:
			execs[who] += take_any(in, 24);
			ran(c, now, execs[who], capacity);
		}
	}
}
