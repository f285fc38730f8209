/*
 * Deterministic virtual time for several vCPUs of different speeds.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef TCG_ACCEL_OPS_LOCKSTEP_H
#define TCG_ACCEL_OPS_LOCKSTEP_H

#include "hw/core/cpu.h"

void lockstep_start_vcpu_thread(CPUState *cs);
void lockstep_kick_vcpu_thread(CPUState *cs);
void lockstep_handle_interrupt(CPUState *cs, int mask);
int64_t lockstep_get_clock(void);

#endif
