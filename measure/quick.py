"""``--quick`` of every script here: the same script in small, on a CPU, to see that it runs. Figures then mean nothing.

Kernels run in Triton's interpreter, which has to be asked for before the first import: without ``TRITON_INTERPRET=1`` a
script that launches kernels refuses.
"""

from __future__ import annotations

import argparse
import os
import sys

QUICK = "--quick"


def parse(parser: argparse.ArgumentParser, quick: str, kernels: bool = False) -> argparse.Namespace:
    """A script's options. With ``--quick`` the arguments in ``quick`` come first, and those that are given override
    them. ``kernels``: whether the script launches some."""
    parser.add_argument(QUICK, action="store_true", help="in small, on a CPU: to see that the script runs")
    given = sys.argv[1:]
    if QUICK not in given:
        return parser.parse_args()
    if kernels and os.environ.get("TRITON_INTERPRET") != "1":
        parser.error(f"{QUICK} runs kernels on the CPU: set TRITON_INTERPRET=1")
    if kernels:
        from support.quick_interpreter import hurry

        hurry()
    return parser.parse_args([*quick.split(), *given])
