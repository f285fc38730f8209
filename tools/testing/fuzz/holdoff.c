// SPDX-License-Identifier: GPL-2.0
/* Hold-off: any order of calls, in any units, on clocks that may differ between CPUs */
#include "fuzz.h"
#include "cpufreq_holdoff.h"

static void one(struct input *in)
{
	u64 now = 1 + take_any(in, 62), wanted = 0, then;
	struct holdoff h = {};

	while (in->at < in->end) {
		u32 util = take_below(in, 4096), lo = h.lo, hi = h.hi;
		u8 what = take(in, 1);
		u32 unit = what & 16 ? take_below(in, 3) * 512 : h.unit, noise = unit / 64;
		bool known = unit == h.unit;

		PROPERTY(holdoff_knows(&h, unit) == (unit && known));
		PROPERTY(holdoff_has(&h, util) == (util >= lo && util <= hi));
		now += take_any(in, 32);
		switch (what % 4) {
		case 0:
			holdoff_set(&h, unit, util);
			PROPERTY(h.unit == unit && h.set == util && h.hi == util);
			PROPERTY(h.lo <= util && util - h.lo <= noise && (util - h.lo == noise || !h.lo));
			wanted = 0;
			break;
		case 1:
			holdoff_same(&h, unit, util);
			PROPERTY(h.unit == unit && holdoff_has(&h, util));
			PROPERTY(known ? h.lo <= lo && h.hi >= hi : h.set == util && h.hi == util);
			wanted = 0;
			break;
		default:
			then = now - (what & 4 ? 1000 % now : 0);
			if (!wanted)
				wanted = then;
			PROPERTY(holdoff_settled(&h, then) ==
				 (then >= wanted && then - wanted >= 10000000));
			PROPERTY(h.since == wanted && h.lo == lo && h.hi == hi);
		}
		PROPERTY(wanted || !h.since);
	}
}
