# SPDX-License-Identifier: GPL-2.0
"""The tables of the series' models, measured in guests: README.md beside this file."""
