# SPDX-License-Identifier: GPL-2.0
"""Work that goes from thread to thread, with deep idle states on."""
