/*
 * Virtual silicon: what the rest of target/i386 calls.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef I386_VIRTUAL_SILICON_H
#define I386_VIRTUAL_SILICON_H

#include "cpu.h"
#include "exec/virtual-silicon.h"

/*
 * RDMSR/WRMSR: true if the model has the register and has dealt with it; both
 * raise #GP themselves.  False: QEMU's own registers come next.
 */
bool silicon_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val, uintptr_t ra);
bool silicon_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val, uintptr_t ra);

/* Changes what CPUID is about to return for @leaf, @sub. */
void silicon_cpuid(CPUX86State *env, uint32_t leaf, uint32_t sub,
                   uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx);

/* The time stamp counter without the offset that the guest has written. */
uint64_t silicon_tsc(void);

bool silicon_has_waitpkg(void);

/* Does PAUSE take more than an instruction's time? */
bool silicon_pauses(void);

/* Does a store, a deadline or a masked interrupt end the rest of this vCPU? */
bool silicon_calls(CPUState *cs);

/* The guest has read @port: that may be how it asks for a rest. */
void silicon_inb(CPUX86State *env, uint32_t port);

void silicon_monitor(CPUX86State *env, target_ulong addr, uintptr_t ra);
G_NORETURN void silicon_mwait(CPUX86State *env, int next_eip_addend,
                              uintptr_t ra);

#endif
