/* SPDX-License-Identifier: GPL-2.0 */
/* The little of the kernel that turbo_table.c takes for granted. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define ENODATA			61
#define UINT_MAX		(~0U)
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define clamp(v, low, high)	min(max(v, low), high)
#define DIV_ROUND_UP_ULL(n, d)	(((n) + (d) - 1) / (d))
#define unlikely(x)		(x)
#define noinline_for_stack	__attribute__((noinline))
#define __maybe_unused		__attribute__((unused))
#undef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#define EXPORT_SYMBOL_IF_KUNIT(symbol)

#define SCHED_CAPACITY_SHIFT	10
#define SCHED_CAPACITY_SCALE	(1L << SCHED_CAPACITY_SHIFT)

/* As in <asm/cpu_device_id.h>, which needs too many others */
#define X86_VENDOR_INTEL	0
#define VFM_MAKE(vendor, family, model)	((vendor) << 16 | (family) << 8 | (model))

static inline unsigned int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

#endif
