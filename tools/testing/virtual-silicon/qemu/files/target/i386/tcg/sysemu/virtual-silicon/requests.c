/*
 * Virtual silicon: how the operating system asks for a frequency.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Intel: IA32_PERF_CTL, or hardware-managed P-states (SDM volume 3, 15.4).
 * AMD: P-states by number (PPR, MSRC001_006x), or CPPC (APM volume 2, 17.6).
 *
 * Where the request leaves the choice to the hardware (HWP and CPPC with a
 * desired performance of 0), the model chooses by this rule: each millisecond
 * the busy share of the CPU in that millisecond is averaged with weight 1/4
 * into what it was, and the CPU gets the frequency at which this load would
 * keep it busy for 50 % (energy preference 0) to 95 % (255) of the time.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "internal.h"

#define PERF_CTL_TURBO_OFF      (1ull << 32)
#define MISC_ENABLE_TURBO_OFF   (1ull << 38)
#define HWCR_BOOST_OFF          (1ull << 25)

#define AUTONOMY_PERIOD_NS      1000000
#define AUTONOMY_WEIGHT         4
#define SHARE_ONE               1024

enum {
    REG_PERF_STATUS         = 0x198,
    REG_PERF_CTL            = 0x199,
    REG_MISC_ENABLE         = 0x1a0,
    REG_ENERGY_PERF_BIAS    = 0x1b0,
    REG_PM_ENABLE           = 0x770,
    REG_HWP_CAPABILITIES    = 0x771,
    REG_HWP_REQUEST         = 0x774,
    REG_HWP_STATUS          = 0x777,
    REG_AMD_HWCR            = 0xc0010015,
    REG_AMD_PSTATE_LIMIT    = 0xc0010061,
    REG_AMD_PSTATE_CTL      = 0xc0010062,
    REG_AMD_PSTATE_STATUS   = 0xc0010063,
    REG_AMD_CPPC_CAP1       = 0xc00102b0,
    REG_AMD_CPPC_ENABLE     = 0xc00102b1,
    REG_AMD_CPPC_CAP2       = 0xc00102b2,
    REG_AMD_CPPC_REQ        = 0xc00102b3,
    REG_AMD_CPPC_STATUS     = 0xc00102b4,
};

/* The fields of a performance request, whoever's register it came from. */
typedef struct VsWish {
    unsigned min, max, desired;     /* ratios; desired 0: by the rule above */
    unsigned epp;
} VsWish;

static bool turbo_off(const VsThread *t)
{
    return (t->misc_enable & MISC_ENABLE_TURBO_OFF) ||
           (t->hwcr & HWCR_BOOST_OFF);
}

/* By the bit that Intel parts have for it. */
bool vs_turbo_disabled(const VsThread *t)
{
    return t->misc_enable & MISC_ENABLE_TURBO_OFF;
}

static unsigned share_of_autonomy(unsigned epp)
{
    return SHARE_ONE / 2 + epp * (SHARE_ONE * 45 / 100) / 255;
}

static unsigned autonomous_ratio(const VsThread *t, unsigned epp)
{
    uint64_t mhz = t->busy_share * t->core->khz / share_of_autonomy(epp);

    return DIV_ROUND_UP(mhz, t->config->clock.bus_khz);
}

static unsigned wish_ratio(const VsThread *t, VsWish w)
{
    unsigned ratio = w.desired ? w.desired : autonomous_ratio(t, w.epp);

    return MAX(w.min, MIN(ratio, w.max));
}

/* SDM volume 3, 15.4.4: without the preference field the bias stands in. */
static unsigned hwp_epp(const VsThread *t)
{
    uint64_t bias = 0;

    if (t->config->hwp->epp) {
        return (t->hwp_request >> 24) & 0xff;
    }
    vs_described_read(t, REG_ENERGY_PERF_BIAS, &bias);
    return (bias & 0xf) * 255 / 15;
}

/* Performance levels to ratios: rounded down, as hwp_level() rounds up. */
static unsigned hwp_ratio(const VsConfig *c, unsigned level)
{
    return level * c->hwp->unit_khz / c->clock.bus_khz;
}

static uint64_t hwp_level(const VsConfig *c, unsigned ratio)
{
    return DIV_ROUND_UP(ratio * c->clock.bus_khz, c->hwp->unit_khz);
}

static VsWish hwp_wish(const VsThread *t)
{
    const VsConfig *c = t->config;

    return (VsWish) {
        .min = hwp_ratio(c, t->hwp_request & 0xff),
        .max = hwp_ratio(c, (t->hwp_request >> 8) & 0xff),
        .desired = hwp_ratio(c, (t->hwp_request >> 16) & 0xff),
        .epp = hwp_epp(t),
    };
}

static unsigned cppc_ratio(const VsConfig *c, unsigned perf)
{
    return DIV_ROUND_UP(perf * c->clock.base_ratio, c->cppc_nominal);
}

/* 0, as after reset: nobody has asked for anything, so nothing is held back. */
static VsWish cppc_wish(const VsThread *t)
{
    if (!t->cppc_request) {
        return (VsWish) { .max = t->config->clock.max_ratio };
    }
    return (VsWish) {
        .max = cppc_ratio(t->config, t->cppc_request & 0xff),
        .min = cppc_ratio(t->config, (t->cppc_request >> 8) & 0xff),
        .desired = cppc_ratio(t->config, (t->cppc_request >> 16) & 0xff),
        .epp = (t->cppc_request >> 24) & 0xff,
    };
}

/* P0 with boost is whatever the turbo limit leaves. */
static unsigned amd_ratio(const VsThread *t)
{
    const VsConfig *c = t->config;
    unsigned p = MIN(t->pstate_ctl & 7, c->npstates - 1);

    if (c->cppc_nominal && (t->core->package->cppc_enable & 1)) {
        return wish_ratio(t, cppc_wish(t));
    }
    return p ? c->pstate_ratios[p] : c->clock.max_ratio;
}

static unsigned intel_ratio(const VsThread *t)
{
    const VsConfig *c = t->config;
    unsigned ratio = (t->perf_ctl >> 8) & 0xff;

    if (c->hwp && (t->core->package->pm_enable & 1)) {
        return wish_ratio(t, hwp_wish(t));
    }
    return t->perf_ctl & PERF_CTL_TURBO_OFF ? MIN(ratio, c->clock.base_ratio)
                                            : ratio;
}

unsigned vs_request_ratio(const VsThread *t)
{
    const VsConfig *c = t->config;
    unsigned ratio = c->npstates ? amd_ratio(t) : intel_ratio(t);

    if (turbo_off(t)) {
        ratio = MIN(ratio, c->clock.base_ratio);
    }
    ratio = vs_fault_limit(t, MIN(ratio, c->clock.max_ratio));
    return MAX(c->clock.min_ratio, ratio);
}

/* Does anyone leave the choice to the hardware? */
static bool autonomous(const VsThread *t)
{
    const VsConfig *c = t->config;

    if (c->npstates) {
        return c->cppc_nominal && (t->core->package->cppc_enable & 1) &&
               !((t->cppc_request >> 16) & 0xff);
    }
    return c->hwp && (t->core->package->pm_enable & 1) &&
           !((t->hwp_request >> 16) & 0xff);
}

/* The rule: one step of the average for every thread. */
static void autonomy_tick(void *opaque)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    VirtualSilicon *vs = opaque;
    bool more = false;

    QEMU_LOCK_GUARD(&vs->lock);
    for (unsigned i = 0; i < VS_THREADS && vs->threads[i]; i++) {
        VsThread *t = vs->threads[i];
        uint64_t busy = vs_state_ns(t, VS_C0, now);
        int share = MIN((busy - t->busy_seen) * SHARE_ONE / AUTONOMY_PERIOD_NS,
                        SHARE_ONE);

        t->busy_seen = busy;
        t->busy_share += (share - t->busy_share) / AUTONOMY_WEIGHT;
        if (autonomous(t)) {
            more = true;
            vs_model_change(t, now);
        }
    }
    if (more) {
        timer_mod(vs->autonomy, now + AUTONOMY_PERIOD_NS);
    }
}

static void request_changed(VsThread *t, int64_t now)
{
    if (autonomous(t)) {
        if (!t->vs->autonomy) {
            t->vs->autonomy = timer_new_ns(QEMU_CLOCK_VIRTUAL,
                                           autonomy_tick, t->vs);
        }
        if (!timer_pending(t->vs->autonomy)) {
            timer_mod(t->vs->autonomy, now + AUTONOMY_PERIOD_NS);
        }
    }
    vs_model_change(t, now);
}

static unsigned running_ratio(const VsThread *t)
{
    return t->core->khz / t->config->clock.bus_khz;
}

static uint64_t hwp_capabilities(const VsConfig *c)
{
    return hwp_level(c, c->clock.max_ratio) |
           hwp_level(c, c->clock.base_ratio) << 8 |
           hwp_level(c, c->hwp->efficient_ratio) << 16 |
           hwp_level(c, c->clock.min_ratio) << 24;
}

static uint64_t amd_status(const VsThread *t)
{
    const VsConfig *c = t->config;
    unsigned p = c->npstates - 1;

    while (p && c->pstate_ratios[p] < running_ratio(t)) {
        p--;
    }
    return p;
}

static bool hwp_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    switch (msr) {
    case REG_PM_ENABLE:
        *val = t->core->package->pm_enable;
        return true;
    case REG_HWP_CAPABILITIES:
        *val = hwp_capabilities(t->config);
        return true;
    case REG_HWP_REQUEST:
        *val = t->hwp_request;
        return true;
    case REG_HWP_STATUS:
        *val = 0;
        return true;
    }
    return false;
}

static bool intel_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    switch (msr) {
    case REG_PERF_STATUS:
        *val = running_ratio(t) << 8;
        return true;
    case REG_PERF_CTL:
        *val = t->perf_ctl;
        return true;
    }
    return t->config->hwp && hwp_read(t, msr, val);
}

static bool amd_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    const VsConfig *c = t->config;

    switch (msr) {
    case REG_AMD_HWCR:
        *val = t->hwcr;
        return true;
    case REG_AMD_PSTATE_LIMIT:
        *val = (c->npstates - 1) << 4;
        return true;
    case REG_AMD_PSTATE_CTL:
        *val = t->pstate_ctl;
        return true;
    case REG_AMD_PSTATE_STATUS:
        *val = amd_status(t);
        return true;
    case REG_AMD_CPPC_ENABLE:
        *val = t->core->package->cppc_enable;
        return c->cppc_nominal;
    case REG_AMD_CPPC_REQ:
        *val = t->cppc_request;
        return c->cppc_nominal;
    case REG_AMD_CPPC_STATUS:
        *val = 0;
        return c->cppc_nominal;
    }
    return false;
}

bool vs_request_read(const VsThread *t, uint32_t msr, uint64_t *val)
{
    return t->config->npstates ? amd_read(t, msr, val)
                                    : intel_read(t, msr, val);
}

static VsWrite hwp_write(VsThread *t, uint32_t msr, uint64_t val)
{
    VsPackage *package = t->core->package;

    switch (msr) {
    case REG_PM_ENABLE:
        if (val & ~1ull) {
            return VS_WRITE_FAULT;
        }
        package->pm_enable |= val;                      /* reset clears it */
        return VS_WRITE_DONE;
    case REG_HWP_REQUEST:
        t->hwp_request = val;
        return VS_WRITE_DONE;
    case REG_HWP_STATUS:
        return VS_WRITE_DONE;
    case REG_HWP_CAPABILITIES:
        return VS_WRITE_FAULT;
    }
    return VS_WRITE_PASS;
}

/* Where firmware says that any CPU of a domain may ask for all of them. */
static void perf_ctl_write(VsThread *t, uint64_t val, int64_t now)
{
    unsigned n = MAX(t->config->clock.domain_cpus, 1);
    unsigned first = t->cs->cpu_index / n * n;

    for (unsigned i = first; i < first + n && i < VS_THREADS; i++) {
        VsThread *other = t->vs->threads[i];

        if (other) {
            other->perf_ctl = val;
            vs_model_change(other, now);
        }
    }
}

static VsWrite intel_write(VsThread *t, uint32_t msr, uint64_t val, int64_t now)
{
    switch (msr) {
    case REG_PERF_STATUS:
        return VS_WRITE_FAULT;
    case REG_PERF_CTL:
        if (val & ~(0xffffull | PERF_CTL_TURBO_OFF)) {
            return VS_WRITE_FAULT;
        }
        perf_ctl_write(t, val, now);
        return VS_WRITE_DONE;
    }
    return t->config->hwp ? hwp_write(t, msr, val) : VS_WRITE_PASS;
}

static VsWrite amd_write(VsThread *t, uint32_t msr, uint64_t val)
{
    bool cppc = t->config->cppc_nominal;

    switch (msr) {
    case REG_AMD_HWCR:
        t->hwcr = val;
        return VS_WRITE_DONE;
    case REG_AMD_PSTATE_CTL:
        if (val & ~7ull) {
            return VS_WRITE_FAULT;
        }
        t->pstate_ctl = val;
        return VS_WRITE_DONE;
    case REG_AMD_PSTATE_LIMIT:
    case REG_AMD_PSTATE_STATUS:
        return VS_WRITE_FAULT;
    case REG_AMD_CPPC_ENABLE:
        if (!cppc) {
            return VS_WRITE_PASS;
        }
        t->core->package->cppc_enable |= val & 1;       /* reset clears it */
        return VS_WRITE_DONE;
    case REG_AMD_CPPC_REQ:
        if (!cppc) {
            return VS_WRITE_PASS;
        }
        t->cppc_request = val;
        return VS_WRITE_DONE;
    case REG_AMD_CPPC_CAP1:
    case REG_AMD_CPPC_CAP2:
    case REG_AMD_CPPC_STATUS:
        return cppc ? VS_WRITE_FAULT : VS_WRITE_PASS;
    }
    return VS_WRITE_PASS;
}

VsWrite vs_request_write(VsThread *t, uint32_t msr, uint64_t val, int64_t now)
{
    VsWrite result;

    if (msr == REG_MISC_ENABLE) {
        t->misc_enable = val & MISC_ENABLE_TURBO_OFF;
        result = VS_WRITE_DONE;
    } else if (t->config->npstates) {
        result = amd_write(t, msr, val);
    } else {
        result = intel_write(t, msr, val, now);
    }
    if (result == VS_WRITE_DONE) {
        request_changed(t, now);
    }
    return result;
}

/* What nobody has asked for yet, at power-on and after a reset. */
void vs_request_reset(VsThread *t)
{
    const VsConfig *c = t->config;
    VsPackage *package = t->core->package;

    package->pm_enable = package->cppc_enable = 0;
    t->perf_ctl = c->clock.base_ratio << 8;
    t->misc_enable = 0;
    /* what SDM 15.4.4 gives as reset values */
    t->hwp_request = !c->hwp ? 0 : hwp_level(c, c->clock.min_ratio) |
                                   hwp_level(c, c->clock.max_ratio) << 8 |
                                   0x80ull << 24;
    t->hwcr = 1ull << 24;                       /* TscFreqSel: TSC runs at P0 */
    t->pstate_ctl = 0;
    t->cppc_request = 0;
}
