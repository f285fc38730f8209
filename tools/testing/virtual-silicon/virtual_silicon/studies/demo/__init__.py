# SPDX-License-Identifier: GPL-2.0
"""make demo and make run: what is shown, phase by phase and kernel beside kernel."""
