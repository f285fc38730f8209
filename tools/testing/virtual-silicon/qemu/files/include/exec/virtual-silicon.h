/*
 * What TCG asks of a model of silicon: how fast a vCPU runs, when it rests,
 * when it is awake again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * TCG itself knows nothing of clocks, idle states or power.  A model that does
 * is an object, created before the accelerator, and registers itself in
 * virtual_silicon; without one every hook is a test of that pointer.
 */
#ifndef EXEC_VIRTUAL_SILICON_H
#define EXEC_VIRTUAL_SILICON_H

#include "hw/core/cpu.h"

typedef struct VirtualSiliconModel VirtualSiliconModel;

typedef struct VirtualSiliconOps {
    /*
     * Units of budget that an instruction takes in a block with these flags,
     * 1 to 127.
     */
    unsigned (*insn_cost)(const VirtualSiliconModel *model, uint32_t tb_flags);

    /* A vCPU executes num / den units per ns.  Constant in a stretch. */
    void (*speed)(CPUState *cs, uint64_t *num, uint64_t *den);

    /* Before this time the vCPU stands still, though it is awake. */
    int64_t (*ready)(CPUState *cs);

    /* Called between rounds: virtual time is @now, no vCPU is executing. */
    void (*round)(const VirtualSiliconModel *model, int64_t now);

    /* The vCPU stopped executing at @now (HLT, MWAIT, waiting for SIPI). */
    void (*rest)(CPUState *cs, int64_t now);

    /*
     * A resting vCPU was called by an event at @event.  Returns the time at
     * which it executes again.
     */
    int64_t (*wake)(CPUState *cs, int64_t event);

    /* Is there an event that ends the rest of this vCPU? */
    bool (*awaited)(CPUState *cs);

    /*
     * From what @by does, a @store or an interrupt, to when @cs, which rests,
     * has notice of it, ns.
     */
    int64_t (*signal_ns)(CPUState *by, CPUState *cs, bool store);

    /* Another vCPU stored to the line that this one monitors; BQL held. */
    void (*stored)(CPUState *cs);

    /* The guest has asked for power-off or reset at @now. */
    void (*finish)(const VirtualSiliconModel *model, int64_t now);
} VirtualSiliconOps;

/**
 * VirtualSiliconModel: what TCG knows of the model
 * @deterministic: virtual time follows executed instructions, see
 *                 accel/tcg/lockstep.c
 * @quantum_ns: length of a round in lockstep
 */
struct VirtualSiliconModel {
    const VirtualSiliconOps *ops;
    bool deterministic;
    int64_t quantum_ns;
};

/* The accelerator's, as there is one virtual clock; NULL if it has none. */
extern const VirtualSiliconModel *virtual_silicon;

static inline bool virtual_silicon_deterministic(void)
{
    return virtual_silicon && virtual_silicon->deterministic;
}

/* Of the instruction budget (-icount), for each instruction of a block. */
static inline unsigned virtual_silicon_insn_cost(uint32_t tb_flags)
{
    return virtual_silicon_deterministic() ?
           virtual_silicon->ops->insn_cost(virtual_silicon, tb_flags) : 1;
}

/* The guest powers off or resets: the account of the model ends here. */
void virtual_silicon_finish(void);

/* The vCPU left cpu_exec(): tell the model if it went to rest. */
void virtual_silicon_rest(CPUState *cs);

/* The vCPU is about to execute again after a rest (free-running time). */
void virtual_silicon_wake(CPUState *cs);

#endif
