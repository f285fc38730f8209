# SPDX-License-Identifier: GPL-2.0
"""The model beside published measurements."""
