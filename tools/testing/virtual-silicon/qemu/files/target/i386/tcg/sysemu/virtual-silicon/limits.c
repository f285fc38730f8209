/*
 * Virtual silicon: power and temperature lower the frequency.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Each millisecond, per package:
 *
 * Power: for each of the two limits in MSR_PKG_POWER_LIMIT (SDM 15.10.3) that
 * is on, the running average of the package power, with the limit's time window
 * as its time constant, is compared with it.  Above one of them every core
 * loses a bin, and gets one back when averages and present power are all
 * below.  A limit that does not clamp takes nothing below the base clock.
 *
 * Temperature: one thermal resistance and one time constant from the package
 * to the ambient air, T' = (ambient + P * Rth - T) / tau.  At tjmax a bin goes.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "internal.h"

#define PERIOD_NS 1000000

enum {
    REG_THERM_STATUS        = 0x19c,
    REG_PKG_THERM_STATUS    = 0x1b1,
    REG_RAPL_POWER_UNIT     = 0x606,
    REG_PKG_POWER_LIMIT     = 0x610,
};

typedef struct PowerLimit {
    bool enabled, clamps;
    uint64_t uw;
    int64_t window_ns;
} PowerLimit;

/* Power limit @n of a package, 0 or 1. */
static PowerLimit power_limit(const VsThread *t, unsigned n)
{
    uint64_t units = 0, limits = 0;
    uint32_t limit;

    if (!t->vs->machine->power_limit ||
        !vs_described_read(t, REG_RAPL_POWER_UNIT, &units) ||
        !vs_described_read(t, REG_PKG_POWER_LIMIT, &limits)) {
        return (PowerLimit) { };
    }
    limit = limits >> (32 * n);
    return (PowerLimit) {
        .enabled = limit & 1 << 15,
        .clamps = limit & 1 << 16,
        .uw = (limit & 0x7fffull) * 1000000 >> (units & 0xf),
        /* 2^Y * (1 + Z / 4) time units, Y in bits 21:17, Z in 23:22 */
        .window_ns = ((NANOSECONDS_PER_SECOND << (limit >> 17 & 0x1f)) >>
                      (units >> 16 & 0xf)) * (4 + (limit >> 22 & 3)) / 4,
    };
}

/* Mean power since the last look. */
static uint64_t sample_uw(VsPackage *p, int64_t now)
{
    VsEnergy e = vs_package_energy(p, now);
    uint64_t uj = e.uj - p->power_seen.uj;

    p->power_seen = e;
    return uj * (1000000000 / PERIOD_NS);
}

static void track_temperature(VsPackage *p, uint64_t uw)
{
    const VirtualSiliconThermal *th = p->vs->machine->thermal;
    int64_t settled = th->ambient_mc + uw / 1000 * th->resistance_mk_per_w /
                      1000;

    p->temperature_mc += (settled - p->temperature_mc) * PERIOD_NS /
                         (int64_t)th->tau_ns;
}

static void renew_limit(VsPackage *p, int64_t now)
{
    const VsConfig *c = &p->vs->config;
    uint64_t uw = sample_uw(p, now);
    unsigned ratio = p->limit_ratio, lowest = c->clock.max_ratio;
    bool over = false, under = true;

    for (unsigned n = 0; n < ARRAY_SIZE(p->power_uw); n++) {
        PowerLimit limit = power_limit(p->cores[0]->threads[0], n);
        int64_t step = (int64_t)(uw - p->power_uw[n]);

        if (!limit.enabled) {
            p->power_uw[n] = uw;
            continue;
        }
        p->power_uw[n] += step * PERIOD_NS / MAX(limit.window_ns, PERIOD_NS);
        under &= uw < limit.uw;
        if (p->power_uw[n] > limit.uw) {
            over = true;
            lowest = MIN(lowest, limit.clamps ? c->clock.min_ratio
                                              : c->clock.base_ratio);
        }
    }
    if (c->machine->has_thermal) {
        track_temperature(p, uw);
        if (p->temperature_mc >= c->machine->thermal->tjmax_mc) {
            over = true;
            lowest = c->clock.min_ratio;
        }
    }
    if (over && ratio > lowest) {
        ratio--;
    } else if (!over && under && ratio < c->clock.max_ratio) {
        ratio++;
    }
    if (ratio != p->limit_ratio) {
        p->limit_ratio = ratio;
        p->changed = true;
        if (!p->vs->tcg.deterministic) {
            vs_model_update(p, now);
        }
    }
}

static void limiter_tick(void *opaque)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    VirtualSilicon *vs = opaque;

    QEMU_LOCK_GUARD(&vs->lock);
    for (unsigned i = 0; i < vs->npackages; i++) {
        renew_limit(vs->packages[i], now);
    }
    timer_mod(vs->limiter, now + PERIOD_NS);
}

void vs_limits_start(VirtualSilicon *vs)
{
    const VirtualSiliconMachine *m = vs->machine;

    if (!m->power_limit && !m->has_thermal) {
        return;
    }
    for (unsigned i = 0; m->has_thermal && i < vs->npackages; i++) {
        vs->packages[i]->temperature_mc = m->thermal->ambient_mc;
    }
    vs->limiter = timer_new_ns(QEMU_CLOCK_VIRTUAL, limiter_tick, vs);
    timer_mod(vs->limiter, PERIOD_NS);
}

/*
 * SDM 15.8.2 and 15.8.5: degrees below tjmax in bits 22:16, bit 31: valid,
 * bit 0: too hot now.  During a thermal event (faults.c) it is, whatever the
 * temperature.
 */
bool vs_limits_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    const VirtualSiliconMachine *m = t->vs->machine;
    int64_t below;
    bool event = vs_fault_limit(t, UINT_MAX) != UINT_MAX;

    if (msr != REG_THERM_STATUS && msr != REG_PKG_THERM_STATUS) {
        return false;
    }
    if (!m->has_thermal) {
        if (!vs_described_read(t, msr, val)) {
            return false;
        }
        *val |= event;
        return true;
    }
    below = m->thermal->tjmax_mc - t->core->package->temperature_mc;
    *val = MAX(0, MIN(below / 1000, 127)) << 16 | 1ull << 31 |
           (event || below <= 0);
    return true;
}
