// SPDX-License-Identifier: GPL-2.0
/* Hold-off: any order of calls, in any units, on clocks that may differ between CPUs */
#include "fuzz.h"
#include "cpufreq_holdoff.h"

static void one(struct input *in)
{
	u64 now = 1 + take_any(in, 62), wanted = 0, then;
	struct holdoff h = {};

	holdoff_forget(&h, 0);
	while (in->at < in->end) {
		u32 util = take_below(in, 4096), lo = h.lo, end = h.end;
		u32 first = take(in, 1) & 1 ? util : take_below(in, util + 1), noise;
		u8 what = take(in, 1);
		u32 above = util < h.unit ? util + 1 : U32_MAX;

		PROPERTY(holdoff_has(&h, util) == (util >= lo && util < end));
		now += take_any(in, 32);
		switch (what % 4) {
		case 0:
			holdoff_add(&h, first, util);
			PROPERTY(holdoff_has(&h, util) && holdoff_has(&h, first));
			noise = end && first == util ? 0 : h.unit / 64;
			PROPERTY(h.lo == min(lo, first > noise ? first - noise : 0));
			PROPERTY(h.end == max(end, above));
			break;
		case 1:
			holdoff_forget(&h, take_below(in, 3) * 512);
			PROPERTY(!holdoff_has(&h, util) && h.lo == U32_MAX && !h.end);
			wanted = 0;
			break;
		default:
			then = now - (what & 4 ? 1000 % now : 0);
			if (!wanted)
				wanted = then;
			PROPERTY(holdoff_settled(&h, then) ==
				 (then >= wanted && then - wanted >= 10000000));
			PROPERTY(h.since == wanted && h.lo == lo && h.end == end);
		}
		PROPERTY(wanted || !h.since);
	}
}
