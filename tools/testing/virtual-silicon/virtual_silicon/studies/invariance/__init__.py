# SPDX-License-Identifier: GPL-2.0
"""Frequency invariance: utilisation beside what it should be."""
