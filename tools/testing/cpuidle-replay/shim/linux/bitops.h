/* SPDX-License-Identifier: GPL-2.0 */
#include "replay-kernel.h"
