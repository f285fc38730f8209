// SPDX-License-Identifier: GPL-2.0
/* Hold-off: any order of calls, on clocks that may differ between CPUs */
#include "fuzz.h"
#include "cpufreq_holdoff.h"

/* What is wanted since when, by the calls alone */
static void due(struct holdoff *h, u64 now, bool window_over, u32 util, s64 settle, u64 *wanted)
{
	bool urgent = util >= h->set + 128, is = holdoff_due(h, now, window_over, util, settle);

	if (urgent || !window_over) {
		PROPERTY(is == urgent);
		return;
	}
	if (!*wanted)
		*wanted = now;
	PROPERTY(h->since == *wanted);
	PROPERTY(is == (!settle || (now >= *wanted && now - *wanted >= (u64)settle)));
}

static void one(struct input *in)
{
	u64 now = 1 + take_any(in, 62), wanted = 0;
	struct holdoff h = {};

	while (in->at < in->end) {
		u32 util = take_below(in, 4096), lo = h.lo, hi = h.hi;
		u8 what = take(in, 1);
		bool small = holdoff_small(&h, util);

		PROPERTY(small == (util < h.set && h.set - util < 64));
		now += take_any(in, 32);
		switch (what % 4) {
		case 0:
			holdoff_set(&h, util);
			PROPERTY(h.set == util && h.hi == util);
			PROPERTY(h.lo <= util && util - h.lo <= 8 && (util - h.lo == 8 || !h.lo));
			wanted = 0;
			break;
		case 1:
			holdoff_same(&h, util);
			PROPERTY(h.lo <= lo && h.hi >= hi && h.lo <= util && h.hi >= util);
			wanted = 0;
			break;
		default:
			due(&h, now - (what & 4 ? 1000 % now : 0), what & 8, util,
			    take_any(in, 40), &wanted);
			PROPERTY(h.lo == lo && h.hi == hi);
		}
		PROPERTY(wanted || !h.since);
	}
}
