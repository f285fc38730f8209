/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel has in headers that need too many others: the same names, with the
 * same results. Only what takes part in a result is here.
 */
#ifndef SHIM_DUP_H
#define SHIM_DUP_H

/* Types: glibc's u64 would be long; the kernel's is long long. */
typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
#ifdef __SIZEOF_INT128__
typedef unsigned __int128 u128;
#endif
typedef s64 ktime_t;

#define U32_MAX			UINT_MAX
#define S64_MAX			LLONG_MAX
#define U64_MAX			ULLONG_MAX
#define KTIME_MAX		S64_MAX

#define NSEC_PER_USEC		1000L
#define NSEC_PER_MSEC		1000000L
#define NSEC_PER_SEC		1000000000L
#define USEC_PER_MSEC		1000L
#define SCHED_CAPACITY_SHIFT	10
#define SCHED_CAPACITY_SCALE	(1L << SCHED_CAPACITY_SHIFT)

#undef __always_inline
#define __always_inline		inline __attribute__((__always_inline__))
#define noinline		__attribute__((__noinline__))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define READ_ONCE(x)		({ __typeof__(x) _r = *(volatile __typeof__(x) *)&(x); _r; })
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#define smp_mb()		__asm__ volatile("mfence" ::: "memory")
#define smp_wmb()		__asm__ volatile("" ::: "memory")
#define container_of(p, t, m)	((t *)((char *)(p) - offsetof(t, m)))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BUILD_BUG_ON(c)		_Static_assert(!(c), #c)
#define IS_ERR(p)		((unsigned long)(p) >= -4095UL)
#define PTR_ERR(p)		((long)(p))

/* Arithmetic */
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define GENMASK(h, l)		((~0UL << (l)) & (~0UL >> (63 - (h))))
#define __once(a, b, op)	({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
				   _a op _b ? _a : _b; })
#define min(a, b)		__once(a, b, <)
#define max(a, b)		__once(a, b, >)
#define max3(a, b, c)		max(max(a, b), c)
#define abs_diff(a, b)		({ __typeof__(a) _a = (a); __typeof__(a) _b = (b); \
				   _a > _b ? _a - _b : _b - _a; })
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define clamp_t(t, v, lo, hi)	clamp((t)(v), (t)(lo), (t)(hi))
#define clamp_val(v, lo, hi)	clamp(v, lo, hi)
#define abs(x)			({ __typeof__(x) _x = (x); _x < 0 ? -_x : _x; })
#define ilog2(x)		(fls64(x) - 1)
#define div_u64(n, d)		((u64)(n) / (u32)(d))
#define div64_u64(n, d)		((u64)(n) / (u64)(d))
#define do_div(n, d)		({ u32 _r = (n) % (d); (n) /= (d); _r; })
#define DIV_ROUND_UP_ULL(n, d)	(((unsigned long long)(n) + (d) - 1) / (d))
#define ktime_sub(a, b)		((a) - (b))
#define ktime_to_us(t)		((s64)(t) / NSEC_PER_USEC)

static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

/* <asm/cpu_device_id.h> */
#define X86_VENDOR_INTEL	0
#define VFM_MAKE(vendor, family, model)	((vendor) << 16 | (family) << 8 | (model))

struct list_head { struct list_head *next, *prev; };

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l->prev = l;
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	n->next = h->next;
	n->prev = h;
	h->next->prev = n;
	h->next = n;
}

static inline void list_del(struct list_head *n)
{
	n->next->prev = n->prev;
	n->prev->next = n->next;
}

#define list_for_each_entry(p, h, m)					\
	for (p = container_of((h)->next, __typeof__(*p), m); &p->m != (h);	\
	     p = container_of(p->m.next, __typeof__(*p), m))

/* Of two strings, one newline at the end of either is of no account. */
static inline bool sysfs_streq(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	n -= n && a[n - 1] == '\n' && n == m + 1;
	m -= m && b[m - 1] == '\n' && m == n + 1;
	return n == m && !memcmp(a, b, n);
}

static inline int __sysfs_match_string(const char * const *words, int nr, const char *word)
{
	for (int i = 0; i < nr; i++) {
		if (sysfs_streq(words[i], word))
			return i;
	}
	return -EINVAL;
}
#define sysfs_match_string(words, word)	__sysfs_match_string(words, ARRAY_SIZE(words), word)
/* Base 10 alone */
static inline int kstrtou8(const char *s, unsigned int base, uint8_t *v)
{
	unsigned int value = 0;

	(void)base;
	s += *s == '+';
	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++) {
		value = 10 * value + *s - '0';
		if (value > 255)
			return -ERANGE;
	}
	if (*s == '\n')
		s++;
	if (*s)
		return -EINVAL;
	*v = value;
	return 0;
}

#define strscpy(to, from, size)		snprintf(to, size, "%s", from)

#endif
