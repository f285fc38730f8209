// SPDX-License-Identifier: GPL-2.0
/* Scales of counter differences, against the exact quotient */
#include "fuzz.h"
#include "freq_sample.h"

/* 2^20 * @acnt / (@mcnt * @ratio), 1024 at most */
static u64 quotient(u128 acnt, u128 mcnt, u64 ratio)
{
	u128 scale = (acnt << 20) / (mcnt * ratio);

	return scale < 1024 ? scale : 1024;
}

static void scales(u64 acnt, u64 mcnt, u64 ratio)
{
	u64 scale = freq_sample_scale_any(acnt, mcnt, ratio);
	int lost = max(fls64(acnt | mcnt) - 44, 0);
	u64 a = acnt >> lost, m = mcnt >> lost;

	PROPERTY(scale <= 1024);
	if ((acnt | mcnt) >> 63 || !acnt || !m) {
		PROPERTY(!scale);
		return;
	}
	PROPERTY(scale >= quotient(a, m + 1, ratio) && scale <= quotient(a + 1, m, ratio));
	if (!lost)
		PROPERTY(scale == quotient(acnt, mcnt, ratio));
}

static void usual(u64 acnt, u64 mcnt, u64 most, u64 ratio)
{
	bool is = freq_sample_usual(acnt, mcnt, most);

	PROPERTY(is == (mcnt && mcnt <= most && acnt && acnt <= 1ULL << 43));
	if (is)
		PROPERTY(freq_sample_scale(acnt, mcnt, ratio) == quotient(acnt, mcnt, ratio));
}

static void trouble(struct input *in)
{
	u8 now = 0, bad = 0;

	for (int i = 0; i < 32; i++) {
		if (take(in, 1) & 1) {
			u8 next = freq_trouble_bad(now);

			PROPERTY(next >= now && next <= FREQ_TROUBLE_LIMIT);
			now = next;
			bad++;
		} else {
			now -= now > 0;
			bad = 0;
		}
		PROPERTY(bad < 4 || now == FREQ_TROUBLE_LIMIT);
	}
}

static void one(struct input *in)
{
	u64 acnt = take_any(in, 64), mcnt = take_any(in, 64), tsc = take_any(in, 63);
	u64 ratio = 1 + take_below(in, (1 << 20) - 1);

	scales(acnt, mcnt, ratio);
	usual(acnt, mcnt, take_below(in, 1ULL << 44), ratio);
	PROPERTY(freq_sample_mperf_max(tsc) == (u128)tsc + tsc);
	trouble(in);
}
