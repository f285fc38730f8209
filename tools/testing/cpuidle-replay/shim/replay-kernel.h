/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the cpuidle governors need of the kernel, for user space.
 *
 * Every shim/linux/ header is this file: the governors include only what
 * declares the few types and services below, and include/linux/cpuidle.h
 * itself is taken from the kernel tree, unmodified.
 */
#ifndef REPLAY_KERNEL_H
#define REPLAY_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* glibc's idea of these types is long; the kernel's is long long. */
typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
typedef s64 ktime_t;

#define S64_MAX		LLONG_MAX
#define U64_MAX		ULLONG_MAX
#define U32_MAX		UINT_MAX
#define S16_MIN		SHRT_MIN
#define U16_MAX		USHRT_MAX
#define KTIME_MAX	S64_MAX

#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L

/*
 * The tick period is the trace's, not the build's. A cost measurement wants
 * the kernel's constant instead and defines REPLAY_HZ.
 */
#ifdef REPLAY_HZ
#define TICK_NSEC	(NSEC_PER_SEC / REPLAY_HZ)
#else
extern long replay_tick_nsec;
#define TICK_NSEC	replay_tick_nsec
#endif

#define __init
#define noinline	__attribute__((__noinline__))
#define __read_mostly
#define __cpuidle
#undef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define BIT(n)		(1UL << (n))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BUILD_BUG_ON(c)	_Static_assert(!(c), #c)
#define static_assert	_Static_assert
#define READ_ONCE(x)	(x)
#define WRITE_ONCE(x, v) ((x) = (v))

#define __replay_once(a, b, op) ({					\
	__typeof__(a) __a = (a); __typeof__(b) __b = (b);		\
	__a op __b ? __a : __b; })
#define min(a, b)	__replay_once(a, b, <)
#define max(a, b)	__replay_once(a, b, >)
#define min_t(t, a, b)	min((t)(a), (t)(b))
#define max_t(t, a, b)	max((t)(a), (t)(b))
#define abs(x)		({ __typeof__(x) __x = (x); __x < 0 ? -__x : __x; })
#define clamp(v, lo, hi) min(max(v, lo), hi)
#define clamp_t(t, v, lo, hi) clamp((t)(v), (t)(lo), (t)(hi))

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

#define GENMASK(h, l)	((~0UL << (l)) & (~0UL >> (63 - (h))))
#define __fls(x)	(63 - __builtin_clzl(x))
#define ilog2(x)		(fls64(x) - 1)
#define div_u64(n, d)		((u64)(n) / (u32)(d))
#define div64_u64(n, d)		((u64)(n) / (u64)(d))
#define do_div(n, d)		({ u32 __r = (n) % (d); (n) /= (d); __r; })
#define ktime_sub(a, b)		((a) - (b))
#define ktime_to_us(t)		((s64)(t) / NSEC_PER_USEC)

/* One CPU is replayed at a time, so a per-CPU variable is a variable. */
#define DEFINE_PER_CPU(type, name)	__typeof__(type) name
#define DECLARE_PER_CPU(type, name)	extern __typeof__(type) name
#define per_cpu_ptr(ptr, cpu)		((void)(cpu), (ptr))
#define this_cpu_ptr(ptr)		(ptr)
#define per_cpu(var, cpu)		(*per_cpu_ptr(&(var), cpu))
#define __this_cpu_read(var)		(var)

struct list_head {
	struct list_head *next, *prev;
};

struct cpumask;

typedef struct {
	int counter;
} atomic_t;

/* Only for inline functions of cpuidle.h that no governor calls. */
#define lockdep_assert_irqs_disabled()		do { } while (0)
#define trace_hardirqs_on_prepare()		do { } while (0)
#define lockdep_hardirqs_on_prepare()		do { } while (0)
#define lockdep_hardirqs_on(ip)			do { } while (0)
#define lockdep_hardirqs_off(ip)		do { } while (0)
#define instrumentation_begin()			do { } while (0)
#define instrumentation_end()			do { } while (0)
#define ct_idle_enter()				do { } while (0)
#define ct_idle_exit()				do { } while (0)
#define _RET_IP_				0UL

#define CONFIG_CPU_IDLE	1

/* Services, implemented in emulate.c. */
extern bool tick_nohz_enabled;
u64 local_clock(void);
bool tick_nohz_tick_stopped(void);
bool tick_nohz_idle_got_tick(void);
ktime_t tick_nohz_get_sleep_length(ktime_t *delta_next);
bool kvm_para_available(void);

#define trace_guest_halt_poll_ns_grow(new, old)		do { } while (0)
#define trace_guest_halt_poll_ns_shrink(new, old)	do { } while (0)

/*
 * Each governor is its own object with everything static but this: where the
 * kernel runs an initcall, the replay calls REPLAY_INIT, named by the Makefile.
 */
#define postcore_initcall(fn)	int REPLAY_INIT(void) { return fn(); }
#define module_param(name, type, perm)	_Static_assert(sizeof(name), "")
#define MODULE_PARM_DESC(name, text)	_Static_assert(sizeof(text), "")

#endif /* REPLAY_KERNEL_H */
