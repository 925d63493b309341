# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes quantities as numbers."""

from __future__ import annotations

SUFFIXES = {
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
    **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", start=1)},
    "m": 1e-3,
}


def number(quantity: str | int) -> float:
    """The value of a quantity such as `64Mi`, `1500m`, `2e9` or `8`. Raises ValueError for anything else."""
    text = str(quantity)
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor
    return float(text)
