/*
 * Virtual silicon: who runs how fast, who rests where, and what it costs.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * State changes only at events (a thread rests or wakes, a request, a round of
 * virtual time).  Between two events frequency and power are constant, so each
 * counter is exact when it is brought forward to an event, or projected to the
 * time of a read, by one multiplication.
 *
 * In deterministic time two threads may differ by up to a round, so an event of
 * one may lie before the time up to which another is accounted.
 */
#include "qemu/osdep.h"
#include "silicon.h"

#define FJ_PER_UJ 1000000000ll

static VsState *vs_state(unsigned state)
{
    return &silicon->config.states[state];
}

static void counter_add(VsCounter *c, int64_t ns, uint64_t khz)
{
    unsigned __int128 part = (unsigned __int128)ns * khz + c->part;

    c->whole += part / 1000000;
    c->part = part % 1000000;
}

static uint64_t counter_peek(VsCounter c, int64_t ns, uint64_t khz)
{
    if (ns > 0) {
        counter_add(&c, ns, khz);
    }
    return c.whole;
}

static VsEnergy energy_add(VsEnergy e, int64_t ns, uint64_t uw)
{
    __int128 fj = (__int128)ns * uw + e.fj;
    int64_t uj = fj / FJ_PER_UJ;

    fj -= (__int128)uj * FJ_PER_UJ;
    if (fj < 0) {
        fj += FJ_PER_UJ;
        uj--;
    }
    return (VsEnergy) { .uj = e.uj + uj, .fj = fj };
}

static VsEnergy energy_sum(VsEnergy a, VsEnergy b)
{
    a.uj += b.uj;
    return energy_add(a, b.fj, 1);
}

/* Brings the thread's counters forward to @now. */
static void settle_thread(VsThread *t, int64_t now)
{
    int64_t ns = now - t->since;

    if (ns <= 0) {
        return;
    }
    if (vs_state(t->state)->unhalted) {
        counter_add(&t->mperf, ns, silicon->config.tsc_khz);
        counter_add(&t->aperf, ns, t->core->khz);
    }
    t->ns[t->state] += ns;
    t->since = now;
}

static uint64_t running_uw(uint64_t khz)
{
    const VsConfig *c = &silicon->config;

    return c->active_uw[khz / c->bus_khz - c->min_ratio];
}

/* A core draws what the shallowest of its threads makes it draw. */
static uint64_t core_uw(const VsCore *core)
{
    uint64_t uw = 0;

    for (unsigned i = 0; i < core->nthreads; i++) {
        unsigned state = core->threads[i]->state;

        uw = MAX(uw, state == VS_C0 ? running_uw(core->khz)
                                    : vs_state(state)->power_uw);
    }
    return uw;
}

/* @now may lie before core->since: what was charged too much is taken back. */
static void settle_core(VsCore *core, int64_t now)
{
    core->energy = energy_add(core->energy, now - core->since, core_uw(core));
    core->since = now;
}

static bool core_active(const VsCore *core)
{
    for (unsigned i = 0; i < core->nthreads; i++) {
        if (vs_state(core->threads[i]->state)->active) {
            return true;
        }
    }
    return false;
}

static unsigned turbo_limit(const VsPackage *package)
{
    const VsConfig *c = &silicon->config;
    unsigned active = 0, bin = 0;

    for (unsigned i = 0; i < package->ncores; i++) {
        active += core_active(package->cores[i]);
    }
    while (bin < c->nbins - 1 && active > c->bin_cores[bin]) {
        bin++;
    }
    return c->bin_ratios[bin];
}

#define PERF_CTL_TURBO_OFF      (1ull << 32)
#define MISC_ENABLE_TURBO_OFF   (1ull << 38)

static unsigned requested_ratio(const VsThread *t)
{
    const VsConfig *c = &silicon->config;
    unsigned ratio = (t->perf_ctl >> 8) & 0xff;

    if ((t->perf_ctl & PERF_CTL_TURBO_OFF) ||
        (t->misc_enable & MISC_ENABLE_TURBO_OFF)) {
        ratio = MIN(ratio, c->base_ratio);
    }
    ratio = vs_fault_limit(t, MIN(ratio, c->max_ratio));
    return MAX(c->min_ratio, ratio);
}

/* Threads of a core share its clock: the highest request of them counts. */
unsigned vs_core_ratio(const VsCore *core)
{
    unsigned ratio = 0;

    for (unsigned i = 0; i < core->nthreads; i++) {
        ratio = MAX(ratio, requested_ratio(core->threads[i]));
    }
    return ratio;
}

static void set_khz(VsCore *core, uint64_t khz, int64_t now)
{
    if (core->khz != khz) {
        for (unsigned i = 0; i < core->nthreads; i++) {
            settle_thread(core->threads[i], now);
        }
        settle_core(core, now);
        core->khz = khz;
    }
    for (unsigned i = 0; i < core->nthreads; i++) {
        vs_trace_khz(core->threads[i], now);
    }
}

/* Renews the frequency of every core from requests and the turbo limit. */
void vs_model_update(VsPackage *package, int64_t now)
{
    unsigned limit = turbo_limit(package);

    package->changed = false;
    for (unsigned i = 0; i < package->ncores; i++) {
        VsCore *core = package->cores[i];

        set_khz(core, MIN(vs_core_ratio(core), limit) *
                      silicon->config.bus_khz, now);
    }
}

/* Frequencies are constant in a round: there the change waits for its end. */
void vs_model_change(VsThread *t, int64_t now)
{
    t->core->package->changed = true;
    if (!silicon->deterministic) {
        vs_model_update(t->core->package, now);
    }
}

void vs_model_rest(VsThread *t, int64_t now)
{
    if (t->state != VS_C0) {
        return;
    }
    settle_thread(t, now);
    settle_core(t->core, now);
    t->state = t->rest_state;
    t->entered = now;
    t->entries[t->state]++;
    vs_trace_idle(t, now);
    vs_model_change(t, now);
}

/*
 * The core leaves its state when entry is over, at the earliest; from then
 * until it executes it draws what it draws when running (voltage and clock
 * come up), but MPERF stands still.  In free-running time the latency of the
 * host's own wake-up is all there is.
 */
int64_t vs_model_wake(VsThread *t, int64_t event, VsReason reason)
{
    const VsState *s = vs_state(t->state);
    int64_t left = MAX(event, t->since);
    int64_t runs = left;

    if (t->state == VS_C0) {
        return event;
    }
    if (silicon->deterministic) {
        left = MAX(left, t->entered + s->entry_ns);
        runs = left + s->exit_ns;
    }
    settle_thread(t, left);
    settle_core(t->core, left);
    vs_trace_wake(t, left, reason);
    t->exit_ns += runs - left;
    t->since = runs;
    t->state = VS_C0;
    t->rest_state = VS_MWAIT;
    t->called = false;
    t->break_on_irq = false;
    t->reason = VS_OTHER;
    vs_model_change(t, left);
    return runs;
}

uint64_t vs_aperf(const VsThread *t, int64_t now)
{
    bool runs = vs_state(t->state)->unhalted;

    return counter_peek(t->aperf, runs ? now - t->since : 0, t->core->khz);
}

uint64_t vs_mperf(const VsThread *t, int64_t now)
{
    bool runs = vs_state(t->state)->unhalted;

    return counter_peek(t->mperf, runs ? now - t->since : 0,
                        silicon->config.tsc_khz);
}

uint64_t vs_state_ns(const VsThread *t, unsigned state, int64_t now)
{
    return t->ns[state] + (t->state == state ? MAX(now - t->since, 0) : 0);
}

uint64_t vs_state_ticks(const VsThread *t, unsigned state, int64_t now)
{
    return muldiv64(vs_state_ns(t, state, now), silicon->config.tsc_khz,
                    1000000);
}

VsEnergy vs_cores_energy(const VsPackage *package, int64_t now)
{
    VsEnergy sum = { };

    for (unsigned i = 0; i < package->ncores; i++) {
        const VsCore *core = package->cores[i];

        sum = energy_sum(sum, energy_add(core->energy, now - core->since,
                                         core_uw(core)));
    }
    return sum;
}

VsEnergy vs_package_energy(const VsPackage *package, int64_t now)
{
    return energy_add(vs_cores_energy(package, now), now,
                      silicon->config.uncore_uw);
}

VsEnergy vs_dram_energy(int64_t now)
{
    return energy_add((VsEnergy) { }, now, silicon->config.dram_uw);
}

static VsPackage *find_package(int id)
{
    VsPackage *package;

    for (unsigned i = 0; i < silicon->npackages; i++) {
        if (silicon->packages[i]->id == id) {
            return silicon->packages[i];
        }
    }
    package = g_new0(VsPackage, 1);
    package->id = id;
    silicon->packages[silicon->npackages++] = package;
    return package;
}

static VsCore *find_core(VsPackage *package, const X86CPU *cpu)
{
    VsCore *core;

    for (unsigned i = 0; i < package->ncores; i++) {
        const X86CPU *other = X86_CPU(package->cores[i]->threads[0]->cs);

        if (other->die_id == cpu->die_id && other->core_id == cpu->core_id) {
            return package->cores[i];
        }
    }
    core = g_new0(VsCore, 1);
    core->package = package;
    core->khz = silicon->config.base_ratio * silicon->config.bus_khz;
    package->cores[package->ncores++] = core;
    return core;
}

void vs_model_add(CPUState *cs)
{
    X86CPU *cpu = X86_CPU(cs);
    VsThread *t = g_new0(VsThread, 1);

    t->cs = cs;
    t->core = find_core(find_package(cpu->socket_id), cpu);
    g_assert(t->core->nthreads < ARRAY_SIZE(t->core->threads));
    t->core->threads[t->core->nthreads++] = t;
    t->state = cs->cpu_index ? VS_OFF : VS_C0;
    t->rest_state = VS_MWAIT;
    t->shown_aperf.permille = t->shown_mperf.permille = 1000;
    t->perf_ctl = silicon->config.base_ratio << 8;
    t->registers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    t->core->package->changed = true;
    silicon->threads[cs->cpu_index] = t;
}
