# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choices that a seed decides."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Json = dict[str, Any]


class Dice:
    """`intensity`: the chance that a feature shows which the case is about; others show rarely."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311 -- repeatable on purpose
        self.intensity: dict[str, float] = {}
        self._sizes: dict[str, int] = {}

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def feature(self, name: str) -> bool:
        """Whether an object of this case is to have a certain feature."""
        return self.chance(self.intensity.get(name, 0.03))

    def pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def some(self, choices: Sequence[T], most: int, least: int = 0) -> list[T]:
        """Between `least` and `most` different ones, in any order."""
        return self._random.sample(choices, self.number(least, min(most, len(choices))))

    def number(self, low: int, high: int) -> int:
        """Both ends may come up."""
        return self._random.randint(low, high)

    def size_of(self, image: str) -> int:
        """Bytes of an image; the same whenever the case speaks of it. Around the bounds between which a size counts."""
        return self._sizes.setdefault(image, self.pick((1, 23 << 20, (23 << 20) + 1, 50 << 20, 500 << 20, 1500 << 20)))
