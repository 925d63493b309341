# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show that the comparison can fail: plugins of the scheduler with a mistake each, and whether it is noticed.

python -m differential.mutants                        some mutants of every plugin
python -m differential.mutants --each 1000            all of them
python -m differential.mutants --only node_ports      those of one module
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import importlib.util
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

from differential import ours, upstream
from differential.compare import differences
from differential.mutations import Mutation, mutations
from differential.run import seeded

Json = dict[str, Any]

PLUGINS = "ansible_collections.virtops.kubevirt.plugins.module_utils"
FOLDERS = ("_scheduler/filters", "_scheduler/scores")
REPOSITORY = Path(__file__).resolve().parents[2]
# A mutant that computes for longer than this on one case has been noticed as well.
MOST_SECONDS = 60


@dataclass(frozen=True)
class Mutant:
    """`path`: below module_utils."""

    path: Path
    mutation: Mutation

    @property
    def module(self) -> str:
        return ".".join((PLUGINS, *self.path.with_suffix("").parts))


@dataclass(frozen=True)
class Outcome:
    """`noticed`: by which difference; empty when by none."""

    mutant: Mutant
    noticed: str


# A stored case with kube-scheduler's answers.
Judged = tuple[Json, list[Json]]
# What the processes that run the mutants inherit.
_cases: list[Judged] = []


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    cases = judged(options.seed, options.cases)
    print(f"{len(cases)} of {options.cases} cases: those on which the plugins agree with kube-scheduler as they are")
    found = outcomes(list(mutants(options.each, options.only)), cases)
    print(table(found))
    return 0 if all(noticed for noticed, _total in counts(found).values()) else 1


def judged(seed: int, cases: int) -> list[Judged]:
    """Generated cases on which the plugins agree with kube-scheduler as they are: only mistakes make them differ."""
    stored = list(upstream.store(list(seeded(seed, cases))))
    every = zip(stored, upstream.judge(stored), strict=True)
    return [(case, theirs) for case, theirs in every if not _difference(ours, case, theirs)]


def outcomes(chosen: Sequence[Mutant], cases: Sequence[Judged]) -> list[Outcome]:
    """What becomes of each mutant."""
    _cases[:] = cases
    # Each needs a process that has not imported anything of another.
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        return pool.map(attempt, chosen, chunksize=1)


def mutants(each: int, only: str | None = None) -> Iterator[Mutant]:
    """At most `each` mutants of every plugin; the same ones every time."""
    root = REPOSITORY / "plugins/module_utils"
    for path in sorted(path for folder in FOLDERS for path in (root / folder).glob("*.py")):
        if path.stem not in ("__init__", "registry") and (only is None or path.stem == only):
            every = list(mutations(path.read_text()))
            some = every if len(every) <= each else Random(0).sample(every, each)  # noqa: S311 -- repeatable on purpose
            yield from (Mutant(path.relative_to(root), mutation) for mutation in sorted(some, key=lambda m: m.line))


def attempt(mutant: Mutant) -> Outcome:
    """Ask the mutant until it differs from kube-scheduler."""
    signal.signal(signal.SIGALRM, _give_up)
    try:
        wrong = _with_mistake(mutant)
        for case, theirs in _cases:
            signal.alarm(MOST_SECONDS)
            if found := _difference(wrong, case, theirs):
                return Outcome(mutant, found)
    except Exception as failure:  # noqa: BLE001 -- a plugin that cannot even be imported is noticed, too
        return Outcome(mutant, f"{type(failure).__name__}: {failure}")
    finally:
        signal.alarm(0)
    return Outcome(mutant, "")


def _difference(our_side: ModuleType, case: Json, theirs: list[Json]) -> str:
    """The first difference between the answers to a case, or an empty text."""
    for their, mine in zip(theirs, our_side.answers(case), strict=True):
        if found := differences(their, mine):
            return found[0]
    return ""


def _with_mistake(mutant: Mutant) -> ModuleType:
    """`differential.ours`, imported anew so that it uses the mutant."""
    for name in [name for name in sys.modules if name.startswith(PLUGINS) or name == "differential.ours"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))
    return importlib.import_module("differential.ours")


class _Finder:
    """Finds the one module that is to be imported with a mistake."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._mutant.module:
            return None
        file = str(REPOSITORY / "plugins/module_utils" / self._mutant.path)
        return importlib.util.spec_from_file_location(name, file, loader=_Loader(name, file, self._mutant.mutation))


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, file: str, mutation: Mutation) -> None:
        super().__init__(name, file)
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._mutation.source, self.path, "exec")


def _give_up(number: int, frame: FrameType | None) -> NoReturn:
    raise TimeoutError("the mutant does not end")


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each plugin, then the mutants that nothing noticed."""
    lines = [f"{'plugin':<36} {'noticed':>7} {'of':>4}   for example"]
    for path, (noticed, total) in counts(outcomes).items():
        example = next((o for o in outcomes if o.mutant.path == path and o.noticed), None)
        what = f"line {example.mutant.mutation.line}: {example.mutant.mutation.what}" if example else "-"
        lines.append(f"{path.stem:<36} {noticed:>7} {total:>4}   {what}")
    survivors = [outcome.mutant for outcome in outcomes if not outcome.noticed]
    lines.append(f"{'all':<36} {len(outcomes) - len(survivors):>7} {len(outcomes):>4}")
    lines += [f"unnoticed: {m.path} line {m.mutation.line}: {m.mutation.what}" for m in survivors]
    return "\n".join(lines)


def counts(outcomes: Sequence[Outcome]) -> dict[Path, tuple[int, int]]:
    """(noticed, all) by module."""
    total = Counter(outcome.mutant.path for outcome in outcomes)
    noticed = Counter(outcome.mutant.path for outcome in outcomes if outcome.noticed)
    return {path: (noticed[path], count) for path, count in total.items()}


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "differential.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=6, metavar="N", help="at most so many mutants of a plugin")
    parser.add_argument("--only", metavar="MODULE", help="only mutants of this module, as node_ports")
    parser.add_argument("--cases", type=int, default=250, metavar="N", help="number of cases to ask them")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
