# SPDX-License-Identifier: GPL-2.0
"""freq_max of real parts, by the kernels' own sources."""
