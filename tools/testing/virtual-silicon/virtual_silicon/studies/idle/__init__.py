# SPDX-License-Identifier: GPL-2.0
"""Idle governors and C0.2 under loads."""
