/*
 * Virtual silicon: the model's own account of what happened.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The trace is text, one event a line, time in ns first:
 *
 *   T F cpu khz            frequency of the CPU's core
 *   T I cpu state          rests in this state
 *   T W cpu reason state   was called from it
 *   T E package uJ         energy so far, each 10 ms at most
 *   T M cpu value          the guest wrote value to MSR 0x400000f0; the state
 *                          of every counter follows:
 *   T C cpu tsc mperf aperf busy_ns pause_cycles exit_ns state=entries:ns
 *   ...
 *   T P package package_uj cores_uj dram_uj
 *
 * If the file's name ends in .gz, it is the same text, compressed.
 */
#include "qemu/osdep.h"
#include <zlib.h>
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "internal.h"

#define ENERGY_PERIOD_NS 10000000

static const char *const reasons[] = {
    [VS_OTHER] = "other", [VS_IRQ] = "irq", [VS_NMI] = "nmi",
    [VS_STORE] = "store", [VS_DEADLINE] = "deadline", [VS_LIMIT] = "limit",
    [VS_TIMER] = "timer",
};

/* One file of either kind; the other is NULL. */
struct VsTrace {
    FILE *plain;
    gzFile packed;
};

static void G_GNUC_PRINTF(2, 3) say(VsTrace *trace, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (trace->packed) {
        gzvprintf(trace->packed, format, args);
    } else {
        vfprintf(trace->plain, format, args);
    }
    va_end(args);
}

/* What a mark has said can be read although the emulator still runs. */
static void say_now(VsTrace *trace)
{
    if (trace->packed) {
        gzflush(trace->packed, Z_SYNC_FLUSH);
    } else {
        fflush(trace->plain);
    }
}

static void say_no_more(VsTrace *trace)
{
    if (trace->packed) {
        gzclose(trace->packed);
    } else {
        fclose(trace->plain);
    }
    g_free(trace);
}

bool vs_trace_open(VirtualSilicon *vs, Error **errp)
{
    g_autofree VsTrace *trace = g_new0(VsTrace, 1);

    if (!vs->trace_file) {
        return true;
    }
    if (g_str_has_suffix(vs->trace_file, ".gz")) {
        trace->packed = gzopen(vs->trace_file, "wb6");
    } else {
        trace->plain = fopen(vs->trace_file, "w");
    }
    if (!trace->plain && !trace->packed) {
        error_setg_errno(errp, errno, "%s", vs->trace_file);
        return false;
    }
    vs->trace = g_steal_pointer(&trace);
    say(vs->trace, "# virtual-silicon trace 1\n");
    return true;
}

void vs_trace_khz(VsThread *t, int64_t now)
{
    uint64_t khz = t->core->khz;

    if (t->vs->trace && t->traced_khz != khz) {
        t->traced_khz = khz;
        say(t->vs->trace, "%" PRId64 " F %d %" PRIu64 "\n", now,
                t->cs->cpu_index, khz);
    }
}

void vs_trace_idle(const VsThread *t, int64_t now)
{
    if (t->vs->trace) {
        say(t->vs->trace, "%" PRId64 " I %d %s\n", now,
                t->cs->cpu_index, t->vs->config.states[t->state].name);
    }
}

void vs_trace_wake(const VsThread *t, int64_t now, VsReason reason)
{
    if (t->vs->trace) {
        say(t->vs->trace, "%" PRId64 " W %d %s %s\n", now,
                t->cs->cpu_index, reasons[reason],
                t->vs->config.states[t->state].name);
    }
}

void vs_trace_energy(VirtualSilicon *vs, int64_t now)
{
    if (!vs->trace || now < vs->energy_traced + ENERGY_PERIOD_NS) {
        return;
    }
    vs->energy_traced = now;
    for (unsigned i = 0; i < vs->npackages; i++) {
        const VsPackage *p = vs->packages[i];

        say(vs->trace, "%" PRId64 " E %d %" PRIu64 "\n", now, p->id,
                vs_package_energy(p, now).uj);
    }
}

static void mark_thread(const VsThread *t, int64_t now)
{
    const VsConfig *c = &t->vs->config;

    say(t->vs->trace, "%" PRId64 " C %d %" PRIu64 " %" PRIu64 " %" PRIu64
            " %" PRIu64 " %" PRIu64 " %" PRIu64, now, t->cs->cpu_index,
            vs_tsc(&X86_CPU(t->cs)->env, now), vs_mperf(t, now),
            vs_aperf(t, now), vs_state_ns(t, VS_C0, now), t->pause_cycles,
            t->exit_ns);
    for (unsigned i = VS_OFF; i < c->nstates; i++) {
        say(t->vs->trace, " %s=%" PRIu64 ":%" PRIu64, c->states[i].name,
                t->entries[i], vs_state_ns(t, i, now));
    }
    say(t->vs->trace, "\n");
}

void vs_trace_mark(const VsThread *t, int64_t now, uint64_t value)
{
    if (!t->vs->trace) {
        return;
    }
    say(t->vs->trace, "%" PRId64 " M %d %" PRIu64 "\n", now,
            t->cs->cpu_index, value);
    for (unsigned i = 0; i < VS_THREADS; i++) {
        if (t->vs->threads[i]) {
            mark_thread(t->vs->threads[i], now);
        }
    }
    for (unsigned i = 0; i < t->vs->npackages; i++) {
        const VsPackage *p = t->vs->packages[i];

        say(t->vs->trace, "%" PRId64 " P %d %" PRIu64 " %" PRIu64
                " %" PRIu64 "\n", now, p->id, vs_package_energy(p, now).uj,
                vs_cores_energy(p, now).uj, vs_dram_energy(t->vs, now).uj);
    }
    say_now(t->vs->trace);
}

static void report_package(FILE *f, const VsPackage *p, int64_t now)
{
    fprintf(f, "  {\"package\": %d, \"energy_uj\": %" PRIu64
            ", \"cores_uj\": %" PRIu64 ", \"dram_uj\": %" PRIu64 "}", p->id,
            vs_package_energy(p, now).uj, vs_cores_energy(p, now).uj,
            vs_dram_energy(p->vs, now).uj);
}

static void report_thread(FILE *f, const VsThread *t, int64_t now)
{
    const VsConfig *c = &t->vs->config;

    fprintf(f, "  {\"cpu\": %d, \"package\": %d, \"tsc\": %" PRIu64
            ", \"mperf\": %" PRIu64 ", \"aperf\": %" PRIu64
            ", \"busy_ns\": %" PRIu64 ", \"exit_ns\": %" PRIu64
            ", \"khz\": %" PRIu64 ", \"states\": {", t->cs->cpu_index,
            t->core->package->id, vs_tsc(&X86_CPU(t->cs)->env, now),
            vs_mperf(t, now), vs_aperf(t, now), vs_state_ns(t, VS_C0, now),
            t->exit_ns, t->core->khz);
    for (unsigned i = VS_OFF; i < c->nstates; i++) {
        fprintf(f, "%s\"%s\": {\"entries\": %" PRIu64 ", \"ns\": %" PRIu64 "}",
                i == VS_OFF ? "" : ", ", c->states[i].name, t->entries[i],
                vs_state_ns(t, i, now));
    }
    fprintf(f, "}}");
}

static void report(const VirtualSilicon *vs, FILE *f, int64_t now)
{
    const char *sep = "\n";

    fprintf(f, "{\"time_ns\": %" PRId64 ",\n", now);
    if (vs->tcg.deterministic) {
        fprintf(f, " \"cycles_per_1000_insns\": {\"kernel\": %" PRIu32
                ", \"user\": %" PRIu32 "},\n",
                vs->machine->speed->kernel_cycles_per_1000_insns,
                vs->machine->speed->user_cycles_per_1000_insns);
    }
    fprintf(f, " \"packages\": [");
    for (unsigned i = 0; i < vs->npackages; i++, sep = ",\n") {
        fputs(sep, f);
        report_package(f, vs->packages[i], now);
    }
    fprintf(f, "],\n \"cpus\": [");
    sep = "\n";
    for (unsigned i = 0; i < VS_THREADS && vs->threads[i]; i++) {
        fputs(sep, f);
        report_thread(f, vs->threads[i], now);
        sep = ",\n";
    }
    fprintf(f, "]}\n");
}

static void write_report(const VirtualSilicon *vs, int64_t now)
{
    FILE *f = fopen(vs->report_file, "w");

    if (!f) {
        warn_report("%s: %s", vs->report_file, strerror(errno));
        return;
    }
    report(vs, f, now);
    fclose(f);
}

char *vs_report(const VirtualSilicon *vs, int64_t now)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    report(vs, f, now);
    fclose(f);
    return text;
}

/* The account ends here, even if the host lets vCPUs run on for a while. */
void vs_finish(VirtualSilicon *vs, int64_t now)
{
    if (vs->finished) {
        return;
    }
    vs->finished = true;
    if (vs->report_file) {
        write_report(vs, now);
    }
    if (vs->trace) {
        say_no_more(vs->trace);
        vs->trace = NULL;
    }
}
