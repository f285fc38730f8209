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

static void count(struct sched_chain *c, u32 capacity)
{
	struct sched_chain old = *c;

	chain_count(c, capacity);
	PROPERTY(c->time == old.time + old.ran + old.slack && !c->ran && !c->slack);
	PROPERTY(c->util <= CHAIN_FULL && c->lag <= CHAIN_LAG);
	if (!old.slack)
		PROPERTY(c->util >= old.util);
	if (!old.ran)
		PROPERTY(c->util <= old.util);
}

static void woken(struct sched_chain *w, u32 now, u32 capacity)
{
	struct sched_chain old = *w;
	u32 slept = max((s32)(now - old.time - old.ran), 0);
	bool counts = chain_woken(w, now);

	PROPERTY(w->waker == CHAIN_NOBODY && w->slack <= slept);
	PROPERTY(w->ran == old.ran + slept - w->slack);
	PROPERTY(w->rest == old.rest + (old.waker == CHAIN_NOBODY ? slept : 0));
	/* Only a loop makes work of sleep */
	if (old.waker < CHAIN_AGAIN)
		PROPERTY(w->slack == slept);
	if (counts)
		count(w, capacity);
	else
		PROPERTY(!w->slack && w->ran < CHAIN_GRAIN);
}

static void hand(struct sched_chain *w, const struct sched_chain *from)
{
	struct sched_chain old = *w;
	s32 ahead = from->hop - old.hop;

	chain_hand(w, from->rest, from->hop);
	PROPERTY(w->rest == from->rest && w->hop == from->hop + 1);
	PROPERTY((w->waker == CHAIN_STRANGER) == (ahead < -1 || ahead >= CHAIN_LENGTH));
	PROPERTY(w->waker != CHAIN_LOOP || (old.issued && ahead > 0));
	PROPERTY(w->waker != CHAIN_NOBODY && w->util == old.util);
}

static void one(struct input *in)
{
	struct sched_chain tasks[TASKS] = {};
	u32 now = take(in, 4);

	decays(take(in, 4) % (CHAIN_FULL + 1), take_any(in, 32));
	for (int i = 0; i < TASKS; i++)
		tasks[i].time = tasks[i].closed = now;

	while (in->at < in->end) {
		u8 what = take(in, 1);
		struct sched_chain *c = &tasks[what >> 2 & 3], *by = &tasks[what >> 4 & 3];
		u32 capacity = take_below(in, 1025), old;

		now += take_any(in, 24 + 8 * (what >> 7));
		switch (what & 3) {
		case 0:
			if (c != by) {
				hand(c, by);
				by->issued = true;
			}
			woken(c, now, capacity);
			break;
		case 1:
			woken(c, now, capacity);
			break;
		default:
			old = c->time;
			if (chain_run(c, now))
				count(c, capacity);
			PROPERTY((s32)(now - old) < 0 || (s32)(now - c->time) >= 0);
		}
	}
}
