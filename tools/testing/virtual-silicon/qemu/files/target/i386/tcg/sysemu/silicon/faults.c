/*
 * Virtual silicon: breaking it on purpose.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A fault is one line, in the file given as faults=FILE at the start, or
 * written to the object's property "fault" (QMP qom-set) at any time:
 *
 *   CPU KIND [key=value ...]        CPU: a number, or * for all
 *
 *   freeze  counter=aperf|mperf|both            stands still
 *   zero    counter=...                         reads as 0, goes on from there
 *   rate    counter=... permille=N              counts at N/1000 of its rate
 *   add     counter=... cycles=[-]N             set back or ahead, once
 *   gp      msr=N                               RDMSR and WRMSR raise #GP
 *   msr     msr=N value=N                       reads as this value
 *   cpuid   leaf=N sub=N reg=eax|ebx|ecx|edx clear=MASK
 *   wake                                        ends a rest for no reason
 *   limit   ratio=N                             thermal event: no ratio above
 *
 * at=TIME (default: now), for=TIME (default: for ever), every=TIME (wake
 * only), reads=N (freeze, zero, rate, gp, msr: over after N reads).  TIME has a
 * unit: 1500ns, 30us, 2ms, 1s.  Times are virtual.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "silicon.h"

typedef enum FaultKind {
    FAULT_FREEZE, FAULT_ZERO, FAULT_RATE, FAULT_ADD, FAULT_GP, FAULT_MSR,
    FAULT_CPUID, FAULT_WAKE, FAULT_LIMIT, FAULT_KINDS
} FaultKind;

static const char *const kind_names[FAULT_KINDS + 1] = {
    "freeze", "zero", "rate", "add", "gp", "msr", "cpuid", "wake", "limit",
};

enum { HIT_APERF = 1, HIT_MPERF = 2 };

struct VsFault {
    FaultKind kind;
    int cpu;                    /* -1: all */
    unsigned counters;
    uint64_t permille;
    int64_t cycles;
    uint64_t msr, value;
    uint64_t leaf, sub, clear;
    unsigned reg;
    uint64_t ratio;
    int64_t at, length, every;
    uint64_t reads;             /* left; 0: no limit */
    bool active, over;
    QEMUTimer *begin, *end;
    VsFault *next;
};

static bool fault_hits(const VsFault *f, const VsThread *t)
{
    return f->cpu < 0 || f->cpu == t->cs->cpu_index;
}

uint64_t vs_shown(const VsShown *s, uint64_t count)
{
    return s->shown + (unsigned __int128)(count - s->count) * s->permille / 1000;
}

/* From here on the counter shows @shown and counts at @permille. */
static void reshow(VsShown *s, uint64_t count, uint64_t shown,
                   unsigned permille)
{
    *s = (VsShown) { .count = count, .shown = shown, .permille = permille };
}

static void begin_counter(const VsFault *f, VsShown *s, uint64_t count)
{
    uint64_t shown = vs_shown(s, count);

    switch (f->kind) {
    case FAULT_FREEZE:
        reshow(s, count, shown, 0);
        break;
    case FAULT_ZERO:
        reshow(s, count, 0, 0);
        break;
    case FAULT_RATE:
        reshow(s, count, shown, f->permille);
        break;
    default:
        reshow(s, count, shown + f->cycles, s->permille);
        break;
    }
}

static bool is_counter_fault(const VsFault *f)
{
    return f->kind <= FAULT_ADD;
}

static void fault_counters(const VsFault *f, VsThread *t, int64_t now,
                           bool begin)
{
    uint64_t aperf = vs_aperf(t, now), mperf = vs_mperf(t, now);

    if (f->counters & HIT_APERF) {
        if (begin) {
            begin_counter(f, &t->shown_aperf, aperf);
        } else {
            reshow(&t->shown_aperf, aperf, vs_shown(&t->shown_aperf, aperf),
                   1000);
        }
    }
    if (f->counters & HIT_MPERF) {
        if (begin) {
            begin_counter(f, &t->shown_mperf, mperf);
        } else {
            reshow(&t->shown_mperf, mperf, vs_shown(&t->shown_mperf, mperf),
                   1000);
        }
    }
}

static void fault_packages(int64_t now)
{
    for (unsigned i = 0; i < silicon->npackages; i++) {
        silicon->packages[i]->changed = true;
        if (!silicon->deterministic) {
            vs_model_update(silicon->packages[i], now);
        }
    }
}

static void fault_switch(VsFault *f, int64_t now, bool begin)
{
    f->active = begin;
    f->over = !begin;
    for (unsigned i = 0; i < VS_THREADS; i++) {
        VsThread *t = silicon->threads[i];

        if (t && fault_hits(f, t) && is_counter_fault(f)) {
            fault_counters(f, t, now, begin);
        }
    }
    if (f->kind == FAULT_LIMIT) {
        fault_packages(now);
    }
}

static void fault_wake(const VsFault *f)
{
    for (unsigned i = 0; i < VS_THREADS; i++) {
        VsThread *t = silicon->threads[i];

        if (t && fault_hits(f, t) && t->state > VS_OFF) {
            vs_idle_call(t, VS_OTHER);
        }
    }
}

static void fault_begin(void *opaque)
{
    VsFault *f = opaque;
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    if (f->over) {
        return;
    }
    if (f->kind == FAULT_WAKE) {
        fault_wake(f);
        if (f->every) {
            timer_mod(f->begin, now + f->every);
        }
    }
    WITH_QEMU_LOCK_GUARD(&silicon->lock) {
        if (!f->active) {
            fault_switch(f, now, true);
        }
        f->over = f->kind == FAULT_ADD;
    }
    if (f->length && !timer_pending(f->end)) {
        timer_mod(f->end, now + f->length);
    }
}

static void fault_end(void *opaque)
{
    VsFault *f = opaque;

    timer_del(f->begin);
    QEMU_LOCK_GUARD(&silicon->lock);
    if (f->active && !f->over) {
        fault_switch(f, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), false);
    }
    f->active = false;
}

/* One read of a fault that is limited by reads. */
static void fault_count(VsFault *f, int64_t now)
{
    if (f->reads && !--f->reads) {
        fault_switch(f, now, false);
    }
}

static bool fault_has_msr(const VsFault *f, uint32_t msr)
{
    if (is_counter_fault(f)) {
        return (msr == VS_REG_APERF && (f->counters & HIT_APERF)) ||
               (msr == VS_REG_MPERF && (f->counters & HIT_MPERF));
    }
    return (f->kind == FAULT_GP || f->kind == FAULT_MSR) && f->msr == msr;
}

VsFaultResult vs_fault_register(VsThread *t, uint32_t msr, bool read,
                                int64_t now, uint64_t *val)
{
    VsFaultResult result = VS_FAULT_NONE;

    for (VsFault *f = silicon->faults; f; f = f->next) {
        if (!f->active || f->over || !fault_hits(f, t) ||
            !fault_has_msr(f, msr)) {
            continue;
        }
        if (f->kind == FAULT_GP) {
            result = VS_FAULT_GP;
        } else if (f->kind == FAULT_MSR && read) {
            *val = f->value;
            result = VS_FAULT_VALUE;
        }
        if (read) {
            fault_count(f, now);
        }
    }
    return result;
}

void vs_fault_cpuid(const VsThread *t, uint32_t leaf, uint32_t sub,
                    uint32_t *regs[4])
{
    for (VsFault *f = silicon->faults; f; f = f->next) {
        if (f->kind == FAULT_CPUID && f->active && !f->over &&
            fault_hits(f, t) && f->leaf == leaf && f->sub == sub) {
            *regs[f->reg] &= ~f->clear;
        }
    }
}

unsigned vs_fault_limit(const VsThread *t, unsigned ratio)
{
    for (VsFault *f = silicon->faults; f; f = f->next) {
        if (f->kind == FAULT_LIMIT && f->active && !f->over &&
            fault_hits(f, t)) {
            ratio = MIN(ratio, f->ratio);
        }
    }
    return ratio;
}

static bool parse_time(const char *text, int64_t *ns)
{
    static const struct { const char *unit; int64_t ns; } units[] = {
        { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
    };
    const char *end;
    int64_t n;

    if (qemu_strtoi64(text, &end, 10, &n) || n < 0) {
        return false;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(units); i++) {
        if (g_str_equal(end, units[i].unit)) {
            *ns = n * units[i].ns;
            return n <= INT64_MAX / units[i].ns;
        }
    }
    return false;
}

static bool parse_choice(const char *text, const char *const *names,
                         unsigned n, unsigned *choice)
{
    for (unsigned i = 0; i < n; i++) {
        if (g_str_equal(text, names[i])) {
            *choice = i;
            return true;
        }
    }
    return false;
}

static bool parse_u64(const char *text, uint64_t *value)
{
    return !qemu_strtou64(text, NULL, 0, value);
}

static bool parse_key(VsFault *f, const char *key, const char *text)
{
    static const char *const counters[] = { "", "aperf", "mperf", "both" };
    static const char *const regs[] = { "eax", "ebx", "ecx", "edx" };
    struct { const char *name; uint64_t *value; } numbers[] = {
        { "permille", &f->permille }, { "msr", &f->msr },
        { "value", &f->value }, { "leaf", &f->leaf }, { "sub", &f->sub },
        { "clear", &f->clear }, { "ratio", &f->ratio }, { "reads", &f->reads },
    };

    if (g_str_equal(key, "counter")) {
        return parse_choice(text, counters, 4, &f->counters) && f->counters;
    } else if (g_str_equal(key, "reg")) {
        return parse_choice(text, regs, 4, &f->reg);
    } else if (g_str_equal(key, "cycles")) {
        return !qemu_strtoi64(text, NULL, 0, &f->cycles);
    } else if (g_str_equal(key, "at")) {
        return parse_time(text, &f->at);
    } else if (g_str_equal(key, "for")) {
        return parse_time(text, &f->length) && f->length;
    } else if (g_str_equal(key, "every")) {
        return parse_time(text, &f->every) && f->every >= 1000;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (g_str_equal(key, numbers[i].name)) {
            return parse_u64(text, numbers[i].value);
        }
    }
    return false;
}

/* What a kind cannot do without. */
static const char *missing_key(const VsFault *f)
{
    if (is_counter_fault(f) && !f->counters) {
        return "counter=aperf|mperf|both";
    }
    if (f->kind == FAULT_ADD && !f->cycles) {
        return "cycles=N";
    }
    if (f->kind == FAULT_CPUID && !f->clear) {
        return "clear=MASK";
    }
    if ((f->kind == FAULT_GP || f->kind == FAULT_MSR) && !f->msr) {
        return "msr=N";
    }
    if (f->kind == FAULT_LIMIT && !f->ratio) {
        return "ratio=N";
    }
    return NULL;
}

static bool parse_head(VsFault *f, char **words, const char *line, Error **errp)
{
    uint64_t cpu;
    unsigned kind;

    f->cpu = -1;
    if (!words[0] || !words[1]) {
        error_setg(errp, "fault '%s': needs CPU KIND", line);
        return false;
    }
    if (!g_str_equal(words[0], "*")) {
        if (!parse_u64(words[0], &cpu) || cpu >= VS_THREADS) {
            error_setg(errp, "fault '%s': '%s' is no CPU; a number below %d "
                       "or *", line, words[0], VS_THREADS);
            return false;
        }
        f->cpu = cpu;
    }
    if (!parse_choice(words[1], kind_names, FAULT_KINDS, &kind)) {
        g_autofree char *known = g_strjoinv(", ", (char **)kind_names);

        error_setg(errp, "fault '%s': unknown kind '%s'; there are: %s", line,
                   words[1], known);
        return false;
    }
    f->kind = kind;
    return true;
}

static VsFault *parse_fault(const char *line, Error **errp)
{
    g_auto(GStrv) words = g_strsplit_set(line, " \t", -1);
    g_autofree VsFault *f = g_new0(VsFault, 1);
    unsigned n = 0;

    for (unsigned i = 0; words[i]; i++) {
        if (*words[i]) {
            char *word = words[i];

            words[i] = words[n];
            words[n++] = word;
        }
    }
    if (!parse_head(f, n < 2 ? (char *[]) { NULL, NULL } : words, line, errp)) {
        return NULL;
    }
    for (unsigned i = 2; i < n; i++) {
        g_auto(GStrv) pair = g_strsplit(words[i], "=", 2);

        if (!pair[0] || !pair[1] || !parse_key(f, pair[0], pair[1])) {
            error_setg(errp, "fault '%s': '%s' is not understood", line,
                       words[i]);
            return NULL;
        }
    }
    if (missing_key(f)) {
        error_setg(errp, "fault '%s': needs %s", line, missing_key(f));
        return NULL;
    }
    return g_steal_pointer(&f);
}

/* Timers can only be made once the machine is there. */
static void fault_arm(VsFault *f)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    f->begin = timer_new_ns(QEMU_CLOCK_VIRTUAL, fault_begin, f);
    f->end = timer_new_ns(QEMU_CLOCK_VIRTUAL, fault_end, f);
    if (f->at > now) {
        timer_mod(f->begin, f->at);
    } else {
        fault_begin(f);
    }
}

void vs_faults_arm(void)
{
    for (VsFault *f = silicon->faults; f; f = f->next) {
        fault_arm(f);
    }
}

static void fault_add(VsFault *f)
{
    VsFault **last = &silicon->faults;

    while (*last) {
        last = &(*last)->next;
    }
    qatomic_set(last, f);
}

bool vs_fault_now(const char *line, Error **errp)
{
    VsFault *f = parse_fault(line, errp);

    if (!f) {
        return false;
    }
    WITH_QEMU_LOCK_GUARD(&silicon->lock) {
        fault_add(f);
    }
    fault_arm(f);
    return true;
}

bool vs_faults_read(const char *path, Error **errp)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) gerr = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents(path, &text, NULL, &gerr)) {
        error_setg(errp, "%s", gerr->message);
        return false;
    }
    lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        char *line = g_strstrip(lines[i]);
        VsFault *f;

        if (!*line || *line == '#') {
            continue;
        }
        f = parse_fault(line, errp);
        if (!f) {
            error_prepend(errp, "%s:%u: ", path, i + 1);
            return false;
        }
        fault_add(f);
    }
    return true;
}
