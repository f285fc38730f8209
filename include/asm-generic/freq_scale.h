/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_GENERIC_FREQ_SCALE_H
#define _ASM_GENERIC_FREQ_SCALE_H

#include <linux/compiler.h>
#include <linux/types.h>

/* Architectures that can measure a CPU's clock do so before time is scaled */
static __always_inline void arch_scale_freq_refresh(int cpu, s64 delta) { }

#endif /* _ASM_GENERIC_FREQ_SCALE_H */
