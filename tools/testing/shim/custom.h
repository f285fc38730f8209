/* SPDX-License-Identifier: GPL-2.0 */
/* What is another thing here than in the kernel; whoever uses a function has to have it. */
#ifndef SHIM_CUSTOM_H
#define SHIM_CUSTOM_H

#define CONFIG_CPU_IDLE		1
#define CONFIG_NO_HZ_COMMON	1
#define CONFIG_SMP		1

/* The tick's length is that of the run, not of the build. */
extern long shim_tick_ns;
#define TICK_NSEC	shim_tick_ns
#define TICK_USEC	(TICK_NSEC / NSEC_PER_USEC)

/* Per-CPU variables are arrays, of as many CPUs as the program plays; of one whatever its number. */
#ifndef MAX_CPUS
#define MAX_CPUS	1
#endif
extern int shim_cpu;		/* that runs the present code */
#define smp_processor_id()		(MAX_CPUS > 1 ? shim_cpu : 0)
#define DEFINE_PER_CPU(type, name)	__typeof__(type) name[MAX_CPUS]
#define DECLARE_PER_CPU(type, name)	extern __typeof__(type) name[MAX_CPUS]
#define per_cpu_ptr(ptr, cpu)		(*(ptr) + (MAX_CPUS > 1 ? (cpu) : 0))
#define per_cpu(var, cpu)		(*per_cpu_ptr(&(var), cpu))
#define this_cpu_ptr(ptr)		per_cpu_ptr(ptr, smp_processor_id())
#define __this_cpu_read(var)		per_cpu(var, smp_processor_id())

extern bool tick_nohz_enabled;
u64 local_clock(void);
bool tick_nohz_tick_stopped(void);
bool tick_nohz_idle_got_tick(void);
bool tick_nohz_full_cpu(int cpu);
void tick_nohz_idle_restart_tick(void);
bool need_resched(void);
ktime_t tick_nohz_get_sleep_length(ktime_t *delta_next);
bool kvm_para_available(void);

/*
 * A governor is an object with everything static but this: where the kernel runs an
 * initcall, the program calls SHIM_INIT, which is named on gcc's command line.
 */
#define postcore_initcall(fn)	int SHIM_INIT(void) { return fn(); }

/* Other numbers than the kernel's */
struct rnd_state { u64 x; };

static inline void prandom_seed_state(struct rnd_state *state, u64 seed)
{
	state->x = seed;
}

static inline void prandom_bytes_state(struct rnd_state *state, void *to, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		state->x = state->x * 6364136223846793005ULL + 1442695040888963407ULL;
		((u8 *)to)[i] = state->x >> 56;
	}
}

#endif
