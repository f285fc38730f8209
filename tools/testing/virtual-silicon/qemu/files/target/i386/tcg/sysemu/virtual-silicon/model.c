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
#include "qemu/lockable.h"
#include "internal.h"

#define FJ_PER_UJ 1000000000ll

static const VsState *state_of(const VsThread *t)
{
    return &t->config->states[t->state];
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
    if (state_of(t)->unhalted) {
        counter_add(&t->mperf, ns, t->vs->config.clock.tsc_khz);
        counter_add(&t->aperf, ns, t->core->khz);
    }
    t->ns[t->state] += ns;
    t->since = now;
}

static unsigned ratio_index(const VsCore *core)
{
    const VirtualSiliconClock *clock = &core->config->clock;

    return core->khz / clock->bus_khz - clock->min_ratio;
}

static uint64_t base_khz(const VsCore *core)
{
    return core->config->clock.base_ratio * core->config->clock.bus_khz;
}

static uint64_t state_uw(const VsCore *core, unsigned state)
{
    return core->config->states[state].power_uw[ratio_index(core)];
}

/*
 * A core draws what the shallowest of its threads makes it draw; each further
 * one that executes adds a share of its own.
 */
static uint64_t core_uw(const VsCore *core)
{
    const VirtualSiliconPower *p = core->config->machine->power;
    uint64_t most = 0, others = 0;

    for (unsigned i = 0; i < core->nthreads; i++) {
        const VsThread *t = core->threads[i];
        uint64_t uw = state_uw(core, t->state);

        others += state_of(t)->unhalted ? MIN(uw, most) : 0;
        most = MAX(most, uw);
    }
    return most + others * p->sibling_permille / 1000;
}

/*
 * Time in PAUSE and in coming up was charged as any other up to @now.  What it
 * was charged too much is taken back: of each thread that executes its part of
 * the core's power.
 */
static VsEnergy without_pause(const VsCore *core, VsEnergy e, int64_t now)
{
    const VsConfig *c = core->config;
    uint64_t uw = state_uw(core, VS_C0) - c->pause_uw[ratio_index(core)];
    uint64_t cycles = 0, n = 0;
    int64_t ns = 0;

    for (unsigned i = 0; i < core->nthreads; i++) {
        const VsThread *t = core->threads[i];

        cycles += t->paused;
        if (t->state == VS_C0) {
            ns += MAX(MIN(t->awake, now) - core->since, 0);
            n++;
        }
    }
    if (n > 1) {
        cycles = cycles * 1000 / c->machine->speed->smt_permille;
        uw = uw * (1000 + (n - 1) * c->machine->power->sibling_permille) /
             (1000 * n);
    }
    ns += muldiv64(cycles * 1000, 1000, core->khz);
    return energy_add(e, -ns, uw);
}

/* A core rests as deep as its least idle thread. */
static unsigned core_state(const VsCore *core)
{
    unsigned depth = VS_STATES;

    for (unsigned i = 0; i < core->nthreads; i++) {
        unsigned state = core->threads[i]->state;

        depth = MIN(depth, state == VS_OFF ? VS_STATES : state);
    }
    return depth == VS_STATES ? VS_OFF : depth;
}

/* @now may lie before core->since: what was charged too much is taken back. */
static void settle_core(VsCore *core, int64_t now)
{
    core->state_ns[core_state(core)] += now - core->since;
    core->energy = energy_add(without_pause(core, core->energy, now),
                              now - core->since, core_uw(core));
    core->since = now;
    for (unsigned i = 0; i < core->nthreads; i++) {
        core->threads[i]->paused = 0;
    }
}

static bool core_active(const VsCore *core)
{
    for (unsigned i = 0; i < core->nthreads; i++) {
        if (state_of(core->threads[i])->active) {
            return true;
        }
    }
    return false;
}

static unsigned turbo_limit(const VsPackage *package)
{
    const VsConfig *c = &package->vs->config;
    unsigned active = 0, bin = 0;

    for (unsigned i = 0; i < package->ncores; i++) {
        active += core_active(package->cores[i]);
    }
    while (bin < c->nbins - 1 && active > c->bin_cores[bin]) {
        bin++;
    }
    return c->bin_ratios[bin];
}

/*
 * Threads of a core share its clock: the highest request counts, of those that
 * are active if any are (SDM volume 3, 15.6: coordination by hardware).
 */
static unsigned core_ratio(const VsCore *core)
{
    const VsConfig *c = &core->package->vs->config;
    bool active = core_active(core);
    unsigned ratio = 0;

    for (unsigned i = 0; i < core->nthreads; i++) {
        const VsThread *t = core->threads[i];

        if (!active || c->npstates || state_of(t)->active) {
            ratio = MAX(ratio, vs_request_ratio(t));
        }
    }
    return ratio;
}

/* Does another thread of the core execute too? */
bool vs_core_shared(const VsThread *t)
{
    for (unsigned i = 0; i < t->core->nthreads; i++) {
        const VsThread *other = t->core->threads[i];

        if (other != t && other->state == VS_C0) {
            return true;
        }
    }
    return false;
}

/* The uncore rests as deep as the core that rests least. */
static unsigned package_depth(const VsPackage *package)
{
    unsigned depth = VS_STATES;

    for (unsigned i = 0; i < package->ncores; i++) {
        unsigned state = core_state(package->cores[i]);

        depth = MIN(depth, state == VS_OFF ? VS_STATES : state);
    }
    return depth;
}

static unsigned package_level(const VsPackage *package)
{
    const VirtualSilicon *vs = package->vs;
    const VsConfig *c = &vs->config;
    unsigned depth = package_depth(package), level = 0;
    unsigned others = vs->machine->packages_together ? vs->npackages : 0;

    for (unsigned i = 0; i < others; i++) {
        depth = MIN(depth, package_depth(vs->packages[i]));
    }
    while (level + 1 < c->nlevels && depth >= c->levels[level + 1].core_state) {
        level++;
    }
    return level;
}

/* The uncore's clock, and so its power, follows the fastest active core. */
static uint64_t uncore_uw(const VsPackage *package, unsigned level)
{
    unsigned fastest = 0;

    if (level) {
        return package->vs->config.levels[level].uncore_uw;
    }
    for (unsigned i = 0; i < package->ncores; i++) {
        if (core_active(package->cores[i])) {
            fastest = MAX(fastest, ratio_index(package->cores[i]));
        }
    }
    return package->vs->config.uncore_uw[fastest];
}

static void settle_package(VsPackage *package, int64_t now)
{
    int64_t ns = now - package->since;

    package->uncore = energy_add(package->uncore, ns, package->uncore_uw);
    package->level_ns[package->level] += ns;
    package->since = now;
}

static void renew_one_level(VsPackage *package, int64_t now)
{
    unsigned level = package_level(package);
    uint64_t uw = uncore_uw(package, level);

    if (level != package->level || uw != package->uncore_uw) {
        /* what lies before the last change stays as it was */
        settle_package(package, MAX(now, package->since));
        package->level = level;
        package->uncore_uw = uw;
    }
}

static void renew_level(VsPackage *package, int64_t now)
{
    VirtualSilicon *vs = package->vs;
    unsigned others = vs->machine->packages_together ? vs->npackages : 0;

    renew_one_level(package, now);
    for (unsigned i = 0; i < others; i++) {
        renew_one_level(vs->packages[i], now);
    }
}

static void set_khz(VsCore *core, uint64_t khz, int64_t now)
{
    if (core->khz != khz) {
        for (unsigned i = 0; i < core->nthreads; i++) {
            settle_thread(core->threads[i], now);
        }
        settle_core(core, now);
        core->khz = khz;
        renew_level(core->package, now);
    }
    for (unsigned i = 0; i < core->nthreads; i++) {
        vs_trace_khz(core->threads[i], now);
    }
}

/*
 * Slots of several packages or cores are out of step: each begins a share of
 * the period later than the one before, the golden section's, which spreads any
 * number.
 */
static int64_t next_slot(const VsCore *core, int64_t period, int64_t now)
{
    const VirtualSiliconTransition *tr = core->package->vs->machine->transition;
    int64_t number = tr->per_core ? core->number : core->package->id;
    int64_t phase = number * 618034 % 1000000 * period / 1000000;

    return now + period - ((now - phase) % period + period) % period;
}

/* When the core will look at what is asked for, and what follows takes. */
static void plan_transition(VsCore *core, int64_t now)
{
    const VirtualSiliconTransition *tr = core->package->vs->machine->transition;
    bool up = core->target_khz > core->khz;
    uint64_t long_khz = tr->long_above_ratio * core->config->clock.bus_khz;
    bool far = core->target_khz > long_khz &&
               now >= core->changed + tr->long_after_ns;
    int64_t period = far && tr->long_period_ns ? tr->long_period_ns
                                               : tr->period_ns;
    int64_t slot = period ? next_slot(core, period, now) : now;

    core->moving_to = 0;
    if (core->target_khz == core->left_khz &&
        MIN(core->khz, core->left_khz) > tr->return_above_ratio *
                                         core->config->clock.bus_khz &&
        now < core->changed + tr->return_within_ns) {
        core->moving_to = core->target_khz;
        slot = now + (up ? tr->return_up_ns : tr->return_down_ns);
    }
    timer_mod(core->transition, slot);
}

/* The new clock is there; threads that execute stand still first. */
static void arrive(VsCore *core, int64_t now)
{
    int64_t ready = now + core->package->vs->machine->transition->halt_ns;

    core->left_khz = core->khz;
    core->changed = now;
    set_khz(core, core->moving_to, now);
    core->moving_to = 0;
    core->ready = ready;
    for (unsigned i = 0; i < core->nthreads; i++) {
        VsThread *t = core->threads[i];

        if (t->state == VS_C0 && t->since < ready) {
            settle_thread(t, now);
            t->exit_ns += ready - t->since;
            t->since = ready;
        }
    }
}

static void transition_step(void *opaque)
{
    VsCore *core = opaque;
    const VirtualSiliconTransition *tr = core->package->vs->machine->transition;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    QEMU_LOCK_GUARD(&core->package->vs->lock);
    if (!core->moving_to && core->target_khz != core->khz) {
        int64_t ns = core->target_khz > core->khz ? tr->up_ns : tr->down_ns;

        core->moving_to = core->target_khz;
        if (ns) {
            timer_mod(core->transition, now + ns);
            return;
        }
    }
    if (core->moving_to) {
        arrive(core, now);
    }
    if (core->target_khz != core->khz) {
        plan_transition(core, now);
    }
}

/* Until its slot a change takes a newer target along, but no longer. */
static void start_transition(VsCore *core, uint64_t khz, int64_t now)
{
    const VirtualSiliconTransition *tr = core->package->vs->machine->transition;

    core->target_khz = khz;
    if (!tr) {
        set_khz(core, khz, now);
    } else if (core->khz != khz && !timer_pending(core->transition)) {
        plan_transition(core, now);
    }
}

/* Renews the frequency of every core from requests and limits. */
void vs_model_update(VsPackage *package, int64_t now)
{
    unsigned limit = MIN(turbo_limit(package), package->limit_ratio);

    package->changed = false;
    for (unsigned i = 0; i < package->ncores; i++) {
        VsCore *core = package->cores[i];

        /* a class may not go as low as a limit would have it */
        start_transition(core, MAX(MIN(core_ratio(core), limit),
                                   core->config->clock.min_ratio) *
                               core->config->clock.bus_khz, now);
    }
}

/* Frequencies are constant in a round: there the change waits for its end. */
void vs_model_change(VsThread *t, int64_t now)
{
    t->core->package->changed = true;
    if (!t->vs->tcg.deterministic) {
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
    renew_level(t->core->package, now);
    vs_trace_idle(t, now);
    vs_model_change(t, now);
}

/*
 * Where the wake-up of @t lies in the distribution of its state's latency,
 * parts per million: the same whenever the same CPU rests as often
 * (splitmix64).
 */
static uint32_t draw(const VsThread *t)
{
    uint64_t z = t->vs->machine->speed->seed +
                 ((uint64_t)t->cs->cpu_index << 32) +
                 t->entries[t->state] * 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) % 1000000;
}

/* Linear between the quantiles, and level beyond the first and the last. */
static int64_t quantile_ns(const VsState *s, const int64_t *ns, uint32_t ppm)
{
    unsigned i = 0;

    while (i < s->nexits && s->exit_ppm[i] <= ppm) {
        i++;
    }
    if (i == 0 || i == s->nexits) {
        return ns[i ? i - 1 : 0];
    }
    return ns[i - 1] + (ns[i] - ns[i - 1]) *
           (int64_t)(ppm - s->exit_ppm[i - 1]) /
           (int64_t)(s->exit_ppm[i] - s->exit_ppm[i - 1]);
}

static int64_t cycles_ns(const VsCore *core, uint64_t cycles)
{
    return cycles * 1000000 / core->khz;
}

/*
 * The state that @t has to leave.  A core is no deeper than the least idle of
 * its threads; beside one that executes, a thread in a state for MWAIT has only
 * itself to bring up, which takes what the first of those states takes.
 */
static const VsState *left_state(const VsThread *t)
{
    unsigned depth = MIN(t->state, core_state(t->core));

    return &t->config->states[t->state < VS_MWAIT ? t->state
                                                  : MAX(depth, VS_MWAIT)];
}

/* Of a package that slept at @event already. */
static int64_t package_exit_ns(const VsPackage *package, int64_t event)
{
    return package->since > event ? 0 :
           package->vs->config.levels[package->level].exit_ns;
}

/* When the core had entered @s: after the last of its threads went to rest. */
static int64_t entered_at(const VsThread *t, const VsState *s)
{
    int64_t last = t->entered;

    for (unsigned i = 0; i < t->core->nthreads; i++) {
        const VsThread *other = t->core->threads[i];

        if (other->state != VS_C0 && state_of(other) == s) {
            last = MAX(last, other->entered);
        }
    }
    return last + s->entry_ns + cycles_ns(t->core, s->entry_cycles);
}

/*
 * The core leaves its state when entry is over, at the earliest; from then
 * until it executes it draws what it draws in PAUSE (voltage and clock come up),
 * but MPERF stands still.  It knows when its own timer fires and
 * begins a part of that before.  In free-running time the latency of the host's
 * own wake-up is all there is.
 */
int64_t vs_model_wake(VsThread *t, int64_t event, VsReason reason)
{
    const VsState *s = left_state(t);
    int64_t left = MAX(event, t->since);
    int64_t runs = left;

    if (t->state == VS_C0) {
        return event;
    }
    if (t->vs->tcg.deterministic && t->state != VS_OFF) {
        uint32_t ppm = draw(t);
        int64_t exit = quantile_ns(s, s->exit_ns, ppm);
        int64_t early = reason != VS_TIMER ? 0 :
                        exit - quantile_ns(s, s->timer_ns, ppm);

        left = MAX(left - early, entered_at(t, s));
        runs = MAX(left + exit + cycles_ns(t->core, s->exit_cycles) +
                   package_exit_ns(t->core->package, event),
                   MAX(event, t->core->ready));
    }
    settle_thread(t, left);
    settle_core(t->core, left);
    vs_trace_wake(t, left, reason);
    t->exit_ns += runs - left;
    t->since = t->awake = runs;
    t->state = VS_C0;
    renew_level(t->core->package, left);
    t->rest_state = VS_MWAIT;
    t->called = false;
    t->break_on_irq = false;
    t->reason = VS_OTHER;
    vs_model_change(t, left);
    return runs;
}

uint64_t vs_aperf(const VsThread *t, int64_t now)
{
    bool runs = state_of(t)->unhalted;

    return counter_peek(t->aperf, runs ? now - t->since : 0, t->core->khz);
}

uint64_t vs_mperf(const VsThread *t, int64_t now)
{
    bool runs = state_of(t)->unhalted;

    return counter_peek(t->mperf, runs ? now - t->since : 0,
                        t->vs->config.clock.tsc_khz);
}

uint64_t vs_state_ns(const VsThread *t, unsigned state, int64_t now)
{
    return t->ns[state] + (t->state == state ? MAX(now - t->since, 0) : 0);
}

uint64_t vs_core_state_ns(const VsCore *core, unsigned state, int64_t now)
{
    return core->state_ns[state] +
           (core_state(core) == state ? now - core->since : 0);
}

VsEnergy vs_core_energy(const VsCore *core, int64_t now)
{
    return energy_add(without_pause(core, core->energy, now), now - core->since,
                      core_uw(core));
}

uint64_t vs_level_ticks(const VsPackage *package, unsigned level, int64_t now)
{
    int64_t ns = package->level_ns[level] +
                 (package->level == level ? now - package->since : 0);

    return muldiv64(ns, package->vs->config.clock.tsc_khz, 1000000);
}

VsEnergy vs_cores_energy(const VsPackage *package, int64_t now)
{
    VsEnergy sum = { };

    for (unsigned i = 0; i < package->ncores; i++) {
        sum = energy_sum(sum, vs_core_energy(package->cores[i], now));
    }
    return sum;
}

VsEnergy vs_package_energy(const VsPackage *package, int64_t now)
{
    VsEnergy uncore = energy_add(package->uncore, now - package->since,
                                 package->uncore_uw);

    return energy_sum(vs_cores_energy(package, now), uncore);
}

VsEnergy vs_dram_energy(const VirtualSilicon *vs, int64_t now)
{
    return energy_add((VsEnergy) { }, now, vs->machine->power->dram_uw);
}

static VsPackage *find_package(VirtualSilicon *vs, int id)
{
    VsPackage *package;

    for (unsigned i = 0; i < vs->npackages; i++) {
        if (vs->packages[i]->id == id) {
            return vs->packages[i];
        }
    }
    package = g_new0(VsPackage, 1);
    package->vs = vs;
    package->id = id;
    package->limit_ratio = vs->config.clock.max_ratio;
    vs->packages[vs->npackages++] = package;
    return package;
}

static VsCore *find_core(VsPackage *package, X86CPU *cpu)
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
    core->config = vs_config_of(&package->vs->config, CPU(cpu)->cpu_index);
    core->khz = base_khz(core);
    core->target_khz = core->khz;
    core->number = CPU(cpu)->cpu_index;
    core->transition = timer_new_ns(QEMU_CLOCK_VIRTUAL, transition_step, core);
    package->cores[package->ncores++] = core;
    return core;
}

void vs_model_add(VirtualSilicon *vs, CPUState *cs)
{
    X86CPU *cpu = X86_CPU(cs);
    VsThread *t = g_new0(VsThread, 1);

    t->vs = vs;
    t->cs = cs;
    t->config = vs_config_of(&vs->config, cs->cpu_index);
    t->core = find_core(find_package(vs, cpu->socket_id), cpu);
    g_assert(t->core->nthreads < ARRAY_SIZE(t->core->threads));
    t->core->threads[t->core->nthreads++] = t;
    t->state = cs->cpu_index ? VS_OFF : VS_C0;
    t->core->package->uncore_uw = uncore_uw(t->core->package, 0);
    t->rest_state = VS_MWAIT;
    t->shown_aperf.permille = t->shown_mperf.permille = 1000;
    t->registers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    vs_request_reset(t);
    t->core->package->changed = true;
    vs->threads[cs->cpu_index] = t;
    cpu->vs_thread = t;
}

/* The guest's view of a counter begins anew; a fault of it goes on. */
static void reset_shown(VsShown *s, uint64_t count)
{
    *s = (VsShown) { .count = count, .permille = s->permille };
}

static void reset_core(VsCore *core, int64_t now)
{
    timer_del(core->transition);
    core->moving_to = core->left_khz = 0;
    core->target_khz = base_khz(core);
    set_khz(core, core->target_khz, now);
    memset(core->state_ns, 0, sizeof(core->state_ns));
}

/*
 * Reset of the machine: registers as at power-on, APERF and MPERF at 0 (SDM
 * volume 3, 14.2), and so are the residency counters (volume 4: "since last
 * reset").  Energy, temperature and the account in trace and report go on.
 * QEMU has reset the vCPU: the first executes, the others wait for SIPI.
 */
void vs_model_reset(VsThread *t, int64_t now)
{
    unsigned state = t->cs->halted ? VS_OFF : VS_C0;
    VsPackage *package = t->core->package;

    settle_thread(t, now);
    settle_core(t->core, now);
    settle_package(package, now);
    if (state != t->state) {
        if (state == VS_C0) {
            vs_trace_wake(t, now, VS_OTHER);
        }
        t->state = state;
        if (state != VS_C0) {
            vs_trace_idle(t, now);
        }
    }
    t->rest_state = VS_MWAIT;
    t->called = t->break_on_irq = false;
    t->umwait_control = 0;
    g_hash_table_remove_all(t->registers);
    vs_request_reset(t);
    reset_core(t->core, now);
    reset_shown(&t->shown_aperf, vs_aperf(t, now));
    reset_shown(&t->shown_mperf, vs_mperf(t, now));
    memset(package->level_ns, 0, sizeof(package->level_ns));
    renew_level(package, now);
    vs_model_change(t, now);
}
