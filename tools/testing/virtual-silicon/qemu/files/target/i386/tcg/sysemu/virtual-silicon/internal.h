/*
 * Virtual silicon: a model of the clock, the idle states and the power of an
 * x86 package, for TCG.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * config.c   the machine, out of its QAPI description
 * model.c    who runs how fast, who rests where, what it costs
 * requests.c how the operating system asks for a frequency
 * limits.c   power and temperature lower the frequency
 * msr.c      registers and CPUID leaves that show it to the guest
 * idle.c     MONITOR/MWAIT, UMONITOR/UMWAIT/TPAUSE
 * faults.c   breaking it on purpose
 * trace.c    the model's own account of what happened
 * object.c   -object virtual-silicon
 *
 * Units: time in ns, frequency in kHz, power in uW, energy in uJ with the
 * remainder in fJ (uW * ns).  Everything below the threads' own vCPU state is
 * protected by VirtualSilicon.lock.
 */
#ifndef I386_TCG_VIRTUAL_SILICON_H
#define I386_TCG_VIRTUAL_SILICON_H

#include "qemu/osdep.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "qapi/qapi-types-virtual-silicon.h"
#include "qom/object.h"
#include "cpu.h"
#include "exec/virtual-silicon.h"

#define TYPE_VIRTUAL_SILICON "virtual-silicon"
OBJECT_DECLARE_SIMPLE_TYPE(VirtualSilicon, VIRTUAL_SILICON)

#define VS_THREADS      256
#define VS_STATES       16
#define VS_HINTS        8
#define VS_BINS         16
#define VS_PSTATES      8
#define VS_LEVELS       4
#define VS_QUANTILES    16

/* Fixed places in VsConfig.states; the machine's MWAIT states follow. */
enum {
    VS_C0,              /* executes */
    VS_OFF,             /* waits for SIPI */
    VS_C01,             /* UMWAIT/TPAUSE */
    VS_C02,
    VS_MWAIT,           /* first of the machine's states: C1 */
};

typedef enum VsReason {
    VS_OTHER, VS_IRQ, VS_NMI, VS_STORE, VS_DEADLINE, VS_LIMIT, VS_TIMER,
} VsReason;

/**
 * VsState: one idle state
 * @unhalted: APERF and MPERF run in it
 * @active: its core counts as busy for the turbo limit
 * @residency_msr: counts TSC ticks spent in it, 0 if there is none
 * @port: reading it enters the state, 0: MWAIT with one of @hints does
 * @exit_ppm, @exit_ns: latency until it executes; quantiles of a distribution
 * @exit_cycles: of the core's clock, beside that
 * @timer_ns: the same where the core's own timer ends the rest
 * @power_uw: one entry per ratio, from min_ratio
 */
typedef struct VsState {
    const char *name;
    uint32_t hints[VS_HINTS];
    unsigned nhints;
    uint32_t port;
    uint32_t exit_ppm[VS_QUANTILES];
    int64_t exit_ns[VS_QUANTILES], timer_ns[VS_QUANTILES];
    unsigned nexits;
    uint64_t exit_cycles;
    int64_t entry_ns;
    uint64_t entry_cycles;
    uint64_t *power_uw;
    uint32_t residency_msr;
    bool active;
    bool unhalted;
} VsState;

/**
 * VsLevel: a package idle state
 * @core_state: every core rests in this state or a deeper one
 * @uncore_uw: not used for the first level, see VsConfig.uncore_uw
 * @exit_ns: added to the exit latency of the core that wakes the package
 */
typedef struct VsLevel {
    const char *name;
    unsigned core_state;
    uint64_t uncore_uw;
    int64_t exit_ns;
    uint32_t residency_msr;
} VsLevel;

/*
 * VsConfig: the machine, or a class of its CPUs.  What is the same for all CPUs
 * and needs no other form is read where it was described, in @machine.
 */
typedef struct VsConfig {
    const VirtualSiliconMachine *machine;
    VirtualSiliconClock clock;
    const VirtualSiliconHwp *hwp;       /* NULL: none */
    unsigned bin_cores[VS_BINS], bin_ratios[VS_BINS], nbins;
    VsState states[VS_STATES];
    unsigned nstates;
    VsLevel levels[VS_LEVELS];  /* the first: some core is awake */
    unsigned nlevels;
    bool residency_deeper;      /* the counters hold deeper states too */
    unsigned pstate_ratios[VS_PSTATES], npstates;       /* AMD if any */
    unsigned cppc_nominal;      /* CPPC performance at base_ratio, 0: none */
    uint64_t work_permille;     /* of a cycle, beside the first kind of core */
    uint64_t *pause_uw;         /* a core in PAUSE, per ratio from min_ratio */
    uint64_t *uncore_uw;        /* awake, by ratio of the fastest active core */
    uint64_t cycle_unit;        /* divides what 1000 instructions take */
    GHashTable *registers;      /* MSR number -> VirtualSiliconMsr */
    const VirtualSiliconCpuidList *class_leaves;        /* replace as well */
    struct VsClass *classes;
} VsConfig;

/* CPUs that differ from the machine's others, with a complete configuration. */
typedef struct VsClass {
    const uint16List *cpus;
    VsConfig config;
    struct VsClass *next;
} VsClass;

typedef struct VsEnergy {
    uint64_t uj;
    int64_t fj;                 /* 0 .. 10^9 - 1 */
} VsEnergy;

/* A counter of @whole cycles, @part in 1/10^6 of one. */
typedef struct VsCounter {
    uint64_t whole;
    uint64_t part;
} VsCounter;

/* What the guest reads: @shown when the counter was @count, @permille since. */
typedef struct VsShown {
    uint64_t count;
    uint64_t shown;
    unsigned permille;
} VsShown;

typedef enum VsFaultResult {
    VS_FAULT_NONE, VS_FAULT_VALUE, VS_FAULT_GP,
} VsFaultResult;

enum {
    VS_REG_MPERF = 0xe7,
    VS_REG_APERF = 0xe8,
};

typedef struct VsFault VsFault;
typedef struct VsPackage VsPackage;
typedef struct VsThread VsThread;
typedef struct VsTrace VsTrace;

/*
 * @number: of its first thread
 * @target_khz: what requests and limits ask for
 * @moving_to: the slot has passed, this clock comes with @transition; else 0
 * @left_khz: the clock before the last change, which was at @changed
 * @ready: it stands still until then
 * @since: energy and @state_ns are accounted up to here
 * @state_ns: time in the state that its least idle thread allows
 */
typedef struct VsCore {
    VsPackage *package;
    const VsConfig *config;     /* of its class */
    VsThread *threads[4];
    unsigned nthreads;
    int number;
    uint64_t khz, target_khz, moving_to, left_khz;
    QEMUTimer *transition;
    int64_t changed, ready;
    int64_t since;
    VsEnergy energy;
    int64_t state_ns[VS_STATES];
} VsCore;

struct VsPackage {
    VirtualSilicon *vs;
    int id;
    unsigned ncores;
    VsCore *cores[VS_THREADS];
    bool changed;               /* requests or busy cores did */
    unsigned level;
    uint64_t uncore_uw;
    int64_t since;              /* energy, level_ns: accounted up to here */
    uint64_t level_ns[VS_LEVELS];
    VsEnergy uncore;
    uint64_t pm_enable;         /* HWP; for the whole package, */
    uint64_t cppc_enable;       /* and so is CPPC */
    unsigned limit_ratio;       /* of limits.c */
    uint64_t power_uw[2];       /* running averages, for either power limit */
    VsEnergy power_seen;
    int64_t temperature_mc;
};

/**
 * VsThread: one logical CPU
 * @since: its counters are accounted up to here
 * @rest_state: where it goes when it next halts
 * @called: a store or a deadline ends its rest
 * @break_on_irq: an interrupt ends it whatever EFLAGS.IF is
 * @awake: end of its last exit latency
 * @paused: cycles in PAUSE that its core's energy does not know of yet
 * @pause_cycles: all of them
 */
struct VsThread {
    VirtualSilicon *vs;
    CPUState *cs;
    const VsConfig *config;     /* of its class */
    VsCore *core;
    unsigned state;
    unsigned rest_state;
    int64_t since;
    int64_t entered, awake;
    VsCounter aperf, mperf;
    VsShown shown_aperf, shown_mperf;
    uint64_t ns[VS_STATES];
    uint64_t entries[VS_STATES];
    uint64_t exit_ns;
    uint64_t paused, pause_cycles;
    uint64_t perf_ctl;
    uint64_t misc_enable;
    uint64_t hwp_request;
    uint64_t hwcr, pstate_ctl;
    uint64_t cppc_request;
    uint64_t busy_seen;
    int busy_share;             /* 1/1024 */
    uint64_t umwait_control;
    GHashTable *registers;      /* own values of writable registers */
    QEMUTimer *deadline;
    bool deadline_is_limit;
    bool called;
    VsReason reason;
    bool break_on_irq;
    uint64_t traced_khz;
};

struct VirtualSilicon {
    Object parent;
    VirtualSiliconModel tcg;
    VirtualSiliconMachine *machine;     /* owns what the configuration names */
    VirtualSiliconFaultList *first_faults;
    char *trace_file;
    char *report_file;
    Error *migration_blocker;
    Notifier machine_done;
    Notifier exit;

    VsConfig config;
    QemuMutex lock;
    VsThread *threads[VS_THREADS];
    VsPackage *packages[VS_THREADS];
    unsigned npackages;
    VsFault *faults;
    QEMUTimer *autonomy;
    QEMUTimer *limiter;
    VsTrace *trace;             /* NULL: nobody writes it down */
    int64_t energy_traced;
    bool finished;
    bool complete;
};

/* NULL until the machine is there. */
static inline VsThread *vs_thread(CPUState *cs)
{
    return env_archcpu(cs->env_ptr)->vs_thread;
}

static inline VirtualSilicon *vs_of_model(const VirtualSiliconModel *model)
{
    return container_of(model, VirtualSilicon, tcg);
}

/* config.c */
bool vs_config_init(VsConfig *config, const VirtualSiliconMachine *machine,
                    Error **errp);
const VsConfig *vs_config_of(const VsConfig *config, unsigned cpu);

/* model.c: all with the lock held */
void vs_model_add(VirtualSilicon *vs, CPUState *cs);
void vs_model_reset(VsThread *t, int64_t now);
void vs_model_update(VsPackage *package, int64_t now);
void vs_model_change(VsThread *t, int64_t now);
void vs_model_rest(VsThread *t, int64_t now);
int64_t vs_model_wake(VsThread *t, int64_t event, VsReason reason);
uint64_t vs_aperf(const VsThread *t, int64_t now);
uint64_t vs_mperf(const VsThread *t, int64_t now);
uint64_t vs_state_ns(const VsThread *t, unsigned state, int64_t now);
uint64_t vs_core_state_ns(const VsCore *core, unsigned state, int64_t now);
bool vs_core_shared(const VsThread *t);
VsEnergy vs_cores_energy(const VsPackage *package, int64_t now);
VsEnergy vs_package_energy(const VsPackage *package, int64_t now);
VsEnergy vs_core_energy(const VsCore *core, int64_t now);
VsEnergy vs_dram_energy(const VirtualSilicon *vs, int64_t now);
uint64_t vs_level_ticks(const VsPackage *package, unsigned level, int64_t now);

/* requests.c: with the lock held */
typedef enum VsWrite { VS_WRITE_PASS, VS_WRITE_DONE, VS_WRITE_FAULT } VsWrite;

void vs_request_reset(VsThread *t);
unsigned vs_request_ratio(const VsThread *t);
bool vs_turbo_disabled(const VsThread *t);
bool vs_request_read(const VsThread *t, uint32_t msr, uint64_t *val);
VsWrite vs_request_write(VsThread *t, uint32_t msr, uint64_t val, int64_t now);

/* limits.c: with the lock held, but for the start */
void vs_limits_start(VirtualSilicon *vs);
bool vs_limits_read(const VsThread *t, uint32_t msr, uint64_t *val);

/* faults.c; the parts that registers and clocks ask: with the lock held */
bool vs_fault_add(VirtualSilicon *vs, const VirtualSiliconFault *what,
                  Error **errp);
uint64_t vs_shown(const VsShown *s, uint64_t count);
VsFaultResult vs_fault_register(VsThread *t, uint32_t msr, bool read,
                                int64_t now, uint64_t *val);
void vs_fault_cpuid(const VsThread *t, uint32_t leaf, uint32_t sub,
                    uint32_t *regs[4]);
unsigned vs_fault_limit(const VsThread *t, unsigned ratio);

/* idle.c */
void vs_idle_call(VsThread *t, VsReason reason);
void vs_idle_init(VsThread *t);
void vs_idle_reset(VsThread *t);
extern const VirtualSiliconOps vs_ops;

/* msr.c */
uint64_t vs_tsc(CPUX86State *env, int64_t now);
bool vs_described_read(const VsThread *t, uint32_t msr, uint64_t *val);
int64_t vs_tsc_to_ns(CPUX86State *env, uint64_t tsc);

/* trace.c: all with the lock held */
bool vs_trace_open(VirtualSilicon *vs, Error **errp);
void vs_trace_khz(VsThread *t, int64_t now);
void vs_trace_idle(const VsThread *t, int64_t now);
void vs_trace_wake(const VsThread *t, int64_t now, VsReason reason);
void vs_trace_energy(VirtualSilicon *vs, int64_t now);
void vs_trace_mark(const VsThread *t, int64_t now, uint64_t value);
void vs_finish(VirtualSilicon *vs, int64_t now);
/* JSON; to be freed with free() */
char *vs_report(const VirtualSilicon *vs, int64_t now);

#endif
