// SPDX-License-Identifier: GPL-2.0
/* Saturation: any order of ticks and idle times, any waits and capacities */
#include "fuzz.h"
#include "cpufreq_saturation.h"

static void tick(struct saturation *s, u64 now, u64 wait, u32 given, u32 max_cap, u64 most_wait)
{
	struct saturation old = *s;
	bool more = saturation_tick(s, now, wait, given, max_cap);
	u64 busy = now - old.since;
	u32 wanted = min(2 * given, max_cap);

	PROPERTY(s->usual == old.usual && s->since == old.since);
	PROPERTY(s->busy <= busy && s->busy <= 4 * wait);
	if (!more) {
		PROPERTY(s->floor == old.floor);
		/* What is usual is waited for no longer than four waits and half of that */
		PROPERTY(wanted <= old.floor || busy < 6 * most_wait);
		return;
	}
	PROPERTY(s->floor == wanted && s->floor > old.floor);
	PROPERTY(old.floor || busy >= wait);
}

static void idle(struct saturation *s, u64 now)
{
	struct saturation old = *s;

	saturation_idle(s, now);
	PROPERTY(!s->floor && !s->busy && s->since == now);
	PROPERTY(s->usual >= old.busy && s->usual <= max(old.busy, old.usual));
	if (now - old.since >= old.usual << 4)
		PROPERTY(s->usual == old.busy);
}

static void one(struct input *in)
{
	u64 now = take_any(in, 62), most_wait = 0;
	struct saturation s = { .since = now };

	while (in->at < in->end) {
		u8 what = take(in, 1);

		now += take_any(in, 40);
		if (what & 3) {
			u64 wait = take_below(in, 100000001);
			u32 max_cap = 1 + take_below(in, 1024);

			most_wait = max(most_wait, wait);
			tick(&s, now, wait, take_below(in, max_cap + 1), max_cap, most_wait);
		} else {
			idle(&s, now);
		}
		PROPERTY(s.usual <= 4 * most_wait && s.floor <= 1024);
	}
}
