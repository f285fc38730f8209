# SPDX-License-Identifier: GPL-2.0
"""python3 -m cpuwhy"""
import sys


def start() -> int:
    try:
        from .cli import main
        return main()
    except ModuleNotFoundError as error:
        print(f"cpuwhy: {error.name} is not installed: apt-get install python3-{error.name}, "
              f"or pip install {error.name}", file=sys.stderr)
        return 2


sys.exit(start())
