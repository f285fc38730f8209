# SPDX-License-Identifier: GPL-2.0
"""Do the conclusions hold under other assumptions?"""
