# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spoil inputs by chance, and see that each gets an answer or one clear error.

    python -m fuzz [--mutations 10000] [--seed 1] [--only NUMBER ...] [--processes 2]

Run it with `tests/` and the collection's tree on PYTHONPATH, the latter first.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor

from fuzz.campaign import Outcome, attempt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000, help="how many inputs")
    parser.add_argument("--seed", default="1", help="what chance starts from")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the inputs to try")
    parser.add_argument("--processes", type=int, default=2, help="how many at the same time")
    given = parser.parse_args()
    seeds = [f"{given.seed}/{number}" for number in given.only or range(given.mutations)]
    started = time.monotonic()
    with ProcessPoolExecutor(given.processes) as pool:
        outcomes = list(pool.map(attempt, seeds, chunksize=20))
    wrong = defaultdict(list)
    for outcome in outcomes:
        if outcome.wrong:
            wrong[outcome.where or outcome.wrong].append(outcome)
    for where, alike in sorted(wrong.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(alike):5} {where}: {told(alike[0])}")
    if given.only:
        print(*(outcome.said for outcome in outcomes if not outcome.wrong), sep="\n")
    answers = Counter(outcome.said == "an answer" for outcome in outcomes if not outcome.wrong)
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    print(
        f"{len(outcomes)} inputs in {time.monotonic() - started:.0f} s: {answers[True]} answers, {answers[False]} clear"
        f" errors, {sum(map(len, wrong.values()))} wrong in {len(wrong)} ways; the slowest took"
        f" {slowest.seconds:.1f} s ({slowest.seed}, {slowest.door})"
    )
    return 1 if wrong else 0


def told(outcome: Outcome) -> str:
    return f"{outcome.seed} {outcome.door}, {'; '.join(outcome.spoilt)[:200]}: {outcome.wrong[:160]}"


if __name__ == "__main__":
    raise SystemExit(main())
