/*
 * Virtual silicon: power and temperature lower the frequency.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Each millisecond, per package:
 *
 * Power: the running average of the package power with time constant
 * power_tau_ns is compared with the limit in MSR_PKG_POWER_LIMIT (SDM 15.10.3,
 * power limit 1).  Above it every core loses one bin, and gets one back when
 * average and present power are both below.
 *
 * Temperature: one thermal resistance and one time constant from the package
 * to the ambient air, T' = (ambient + P * Rth - T) / tau.  At tjmax a bin goes.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "silicon.h"

#define PERIOD_NS 1000000

enum {
    REG_THERM_STATUS        = 0x19c,
    REG_PKG_THERM_STATUS    = 0x1b1,
    REG_RAPL_POWER_UNIT     = 0x606,
    REG_PKG_POWER_LIMIT     = 0x610,
};

/* Power limit 1 of the package in uW, 0 if it is off. */
static uint64_t limit_uw(const VsThread *t)
{
    uint64_t units = 0, limit = 0;

    if (!vs_described_read(t, REG_RAPL_POWER_UNIT, &units) ||
        !vs_described_read(t, REG_PKG_POWER_LIMIT, &limit) ||
        !(limit & (1 << 15))) {
        return 0;
    }
    return (limit & 0x7fff) * 1000000 >> (units & 0xf);
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
    const VsConfig *c = &silicon->config;
    int64_t settled = c->ambient_mc + uw / 1000 * c->rth_mk_per_w / 1000;

    p->temperature_mc += (settled - p->temperature_mc) * PERIOD_NS /
                         c->thermal_tau_ns;
}

static void renew_limit(VsPackage *p, int64_t now)
{
    const VsConfig *c = &silicon->config;
    uint64_t limit = c->power_tau_ns ? limit_uw(p->cores[0]->threads[0]) : 0;
    uint64_t uw = sample_uw(p, now);
    int64_t step = (int64_t)(uw - p->power_uw);
    unsigned ratio = p->limit_ratio;
    bool hot;

    if (c->power_tau_ns) {
        p->power_uw += step * PERIOD_NS / MAX(c->power_tau_ns, PERIOD_NS);
    }
    if (c->rth_mk_per_w) {
        track_temperature(p, uw);
    }
    hot = c->rth_mk_per_w && p->temperature_mc >= c->tjmax_mc;
    if (hot || (limit && p->power_uw > limit)) {
        ratio = MAX(ratio - 1, c->min_ratio);
    } else if (!limit || uw < limit) {
        ratio = MIN(ratio + 1, c->max_ratio);
    }
    if (ratio != p->limit_ratio) {
        p->limit_ratio = ratio;
        p->changed = true;
        if (!silicon->deterministic) {
            vs_model_update(p, now);
        }
    }
}

static void limiter_tick(void *opaque)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    QEMU_LOCK_GUARD(&silicon->lock);
    for (unsigned i = 0; i < silicon->npackages; i++) {
        renew_limit(silicon->packages[i], now);
    }
    timer_mod(silicon->limiter, now + PERIOD_NS);
}

void vs_limits_start(void)
{
    const VsConfig *c = &silicon->config;

    if (!c->power_tau_ns && !c->rth_mk_per_w) {
        return;
    }
    for (unsigned i = 0; i < silicon->npackages; i++) {
        silicon->packages[i]->temperature_mc = c->ambient_mc;
    }
    silicon->limiter = timer_new_ns(QEMU_CLOCK_VIRTUAL, limiter_tick, NULL);
    timer_mod(silicon->limiter, PERIOD_NS);
}

/*
 * SDM 15.8.2 and 15.8.5: degrees below tjmax in bits 22:16, bit 31: valid,
 * bit 0: too hot now.  During a thermal event (faults.c) it is, whatever the
 * temperature.
 */
bool vs_limits_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    const VsConfig *c = &silicon->config;
    int64_t below = c->tjmax_mc - t->core->package->temperature_mc;
    bool event = vs_fault_limit(t, UINT_MAX) != UINT_MAX;

    if (msr != REG_THERM_STATUS && msr != REG_PKG_THERM_STATUS) {
        return false;
    }
    if (!c->rth_mk_per_w) {
        if (!vs_described_read(t, msr, val)) {
            return false;
        }
        *val |= event;
        return true;
    }
    *val = MAX(0, MIN(below / 1000, 127)) << 16 | 1ull << 31 |
           (event || below <= 0);
    return true;
}
