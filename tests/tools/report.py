# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a test run: what failed and why, how long the parts took, what the machine was like.

Of a red run often only the last lines are read, so that these are to explain it: sixty of them hold everything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# Lines that begin so are repeated at the end, whatever program said them.
FAILED, UNSTEADY, MACHINE, LOGS = "failed:", "unsteady:", "machine:", "logs:"
# What ansible-test begins its findings with, long before its last lines.
ERROR = "ERROR: "
REPEATED = (FAILED, ERROR, UNSTEADY, MACHINE, LOGS)
# A program that names nothing is quoted by its last lines.
KEPT_LINES, QUOTED, MOST_LINES, WIDTH = 40, 12, 36, 200


@dataclass(frozen=True)
class Words:
    """What a program said: its last lines, and those worth repeating."""

    program: str
    failed: bool = False
    code: int = 0
    last: tuple[str, ...] = ()
    worth: tuple[str, ...] = ()

    def why(self) -> list[str]:
        """Why it failed: the tests by name, or what it found, or else its last words."""
        named = [line for line in self.worth if line.startswith((FAILED, ERROR))]
        return [self.program, *(named or self.last[-QUOTED:]), f"exit code {self.code}"]


@dataclass(frozen=True)
class Outcome:
    """How a part ended. `missing`: why it could not be started."""

    title: str
    seconds: float = 0.0
    missing: str = ""
    programs: tuple[Words, ...] = field(default_factory=tuple)

    @property
    def failed(self) -> list[Words]:
        return [words for words in self.programs if words.failed]

    @property
    def passed(self) -> bool:
        return not self.missing and not self.failed

    def worth(self, prefix: str) -> list[str]:
        return [line for words in self.programs for line in words.worth if line.startswith(prefix)]


def show(outcomes: Sequence[Outcome], seconds: float, machine: Iterable[str]) -> bool:
    """Print the table, what failed and what was unsteady, and the count as the last line; whether all went well.

    In CI a part that cannot run has failed.
    """
    in_ci = os.environ.get("CI", "").lower() in ("1", "true", "yes")
    print(f"\n{'part':<18} {'result':<8} {'time':>6}")
    for outcome in outcomes:
        result = "MISSING" if outcome.missing else "passed" if outcome.passed else "FAILED"
        print(f"{outcome.title:<18} {result:<8} {clock(outcome.seconds):>6}  {outcome.missing}".rstrip())
    print(f"{'all':<18} {'':<8} {clock(seconds):>6}")
    for line in (*machine, *_of_all(outcomes, MACHINE), *_of_all(outcomes, LOGS)):
        print(line[:WIDTH])
    _explain([outcome for outcome in outcomes if outcome.failed])
    for line in _of_all(outcomes, UNSTEADY):
        print(line[:WIDTH])
    missing = sum(bool(outcome.missing) for outcome in outcomes)
    passed = sum(outcome.passed for outcome in outcomes)
    failed = len(outcomes) - passed - (0 if in_ci else missing)
    if missing:
        consequence = "which fails a CI run" if in_ci else "so that stack is NOT proved; CI would fail"
        print(f"\n!!! {missing} part(s) could not run on this machine, {consequence}. !!!")
    print(f"\n{passed} passed, {failed} failed", flush=True)
    return failed == 0


def told(prefix: str, found: Mapping[str, Sequence[str]]) -> list[str]:
    """Names and the lines on each, as they are repeated at the end."""
    return [line for name, why in found.items() for line in (f"{prefix} {name}", *(f"{prefix}     {w}" for w in why))]


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _explain(failed: Sequence[Outcome]) -> None:
    """Each failed part has its share of the lines that a reader gets to see."""
    for outcome in failed:
        lines = [line for words in outcome.failed for line in words.why()]
        share = max(4, MOST_LINES // len(failed))
        print(f"\n===== {outcome.title} failed =====")
        for line in lines[:share]:
            print(line[:WIDTH])
        if len(lines) > share:
            print(f"… and {len(lines) - share} lines more: see above")


def _of_all(outcomes: Iterable[Outcome], prefix: str) -> list[str]:
    return [line for outcome in outcomes for line in outcome.worth(prefix)]
