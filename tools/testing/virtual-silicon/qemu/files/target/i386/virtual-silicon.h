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
bool vs_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val, uintptr_t ra);
bool vs_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val, uintptr_t ra);

/* Changes what CPUID is about to return for @leaf, @sub. */
void vs_cpuid(CPUX86State *env, uint32_t leaf, uint32_t sub,
                   uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx);

/* Has the vCPU a model?  From the first instruction on, or never. */
static inline bool vs_present(CPUState *cs)
{
    return env_archcpu(cs->env_ptr)->vs_thread;
}

/* The time stamp counter without the offset that the guest has written. */
uint64_t vs_raw_tsc(CPUX86State *env);

bool vs_has_waitpkg(CPUState *cs);

/* Does PAUSE take more than an instruction's time? */
bool vs_pauses(CPUState *cs);

/* Does a store, a deadline or a masked interrupt end the rest of this vCPU? */
bool vs_has_call(CPUState *cs);

/* The guest has read @port: that may be how it asks for a rest. */
void vs_inb(CPUX86State *env, uint32_t port);

void vs_monitor(CPUX86State *env, target_ulong addr, uintptr_t ra);
G_NORETURN void vs_mwait(CPUX86State *env, int next_eip_addend,
                              uintptr_t ra);

#endif
