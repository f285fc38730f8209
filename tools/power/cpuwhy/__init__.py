# SPDX-License-Identifier: GPL-2.0
"""cpuwhy: why CPUs slept, woke and clocked as they did."""

VERSION = "2"
