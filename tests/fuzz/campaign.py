# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spoil an input, ask with it, and judge what comes out: an answer or an error for people, within seconds."""

from __future__ import annotations

import copy
import random
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest

from fuzz import documents, doors, grounds
from fuzz.spoiling import spoil

PATIENCE = 10
MOST_WORDS = 20_000
CLEAR = (AnsibleFilterError, ExpectedError, Failure, InvalidRequest)


class TooSlow(BaseException):
    """Raised by the clock, and caught by nobody else."""


@dataclass(frozen=True)
class Outcome:
    """`wrong`: what should not be, empty if it is as it should; `where`: the same for what has the same cause."""

    seed: str
    door: str
    spoilt: tuple[str, ...]
    said: str
    seconds: float
    wrong: str = ""
    where: str = ""


def attempt(seed: str) -> Outcome:
    """The same for the same seed."""
    dice = random.Random(seed)  # noqa: S311  # a seed makes it again
    door = dice.choice([*doors.DOORS, *documents.DOORS])
    with tempfile.TemporaryDirectory() as folder:
        if door in documents.DOORS:
            make, ask_with = documents.DOORS[door]
            document = copy.deepcopy(make())
            spoilt = _spoilt(dice, document)
            return judged(seed, door, spoilt, lambda: ask_with(dice, document, Path(folder)))
        lists = grounds.cluster(dice)
        ask = doors.DOORS[door]
        spoilt = _spoilt(dice, lists)
        for act, chance in ((grounds.circular, 0.03), (grounds.plant, 0.2)):
            if dice.random() < chance:
                spoilt += (_deliberate(act, dice, lists),)
        return judged(seed, door, spoilt, lambda: ask(dice, lists, Path(folder)))


def _spoilt(dice: random.Random, value: Any) -> tuple[str, ...]:
    return tuple(spoil(dice, value) for _times in range(dice.choice((0, 1, 1, 1, 1, 2, 4))))


def _deliberate(act: Callable[[random.Random, Any], str], dice: random.Random, lists: Any) -> str:
    try:
        return act(dice, lists)
    except (LookupError, TypeError, AttributeError):
        return "too spoilt for more"


def judged(seed: str, door: str, spoilt: tuple[str, ...], ask: Any) -> Outcome:
    started = time.perf_counter()
    said, wrong, where = "an answer", "", ""
    try:
        with _clock():
            ask()
    except TooSlow as error:
        wrong, where = f"no answer after {PATIENCE} s", _place(error)
    except CLEAR as error:
        said = str(error)
        wrong = _unclear(said)
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        wrong, where = f"{type(error).__name__}: {error}"[:300], f"{type(error).__name__} {_place(error)}"
    return Outcome(seed, door, spoilt, said, time.perf_counter() - started, wrong, where)


def _unclear(said: str) -> str:
    if len(said) > MOST_WORDS:
        return f"an error of {len(said)} characters"
    hidden = [character for character in said if not character.isprintable()]
    return f"an error with {hidden[0]!r} in it" if hidden else ""


def _place(error: BaseException) -> str:
    """The last line of the collection's that it went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/plugins/" in frame.filename]
    return f"{frames[-1].filename.rpartition('/plugins/')[2]}:{frames[-1].lineno}" if frames else "elsewhere"


@contextmanager
def _clock() -> Iterator[None]:
    def ring(*_args: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
