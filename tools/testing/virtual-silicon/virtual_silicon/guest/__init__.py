# SPDX-License-Identifier: GPL-2.0
"""Guests: their root file system, their boots, and many of them at a time."""
