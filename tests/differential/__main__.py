# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the collection's scheduler with kube-scheduler.

python -m differential --cases 1000 --seed 7 --scores     generated cases, each asking about 20 pods
python -m differential --file cases.jsonl                 cases of a file, as JSON lines or one JSON document
python -m differential --expect case.json                 fill in what kube-scheduler answers to a case
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from differential import files
from differential.run import Report, run, seeded
from differential.shrink import Shrunk, kind, smallest

# Kinds of disagreement.
SHOWN = 5


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.expect:
        for path in options.expect:
            files.expect(path)
        return 0
    cases = chain.from_iterable(map(files.read, options.file)) if options.file else None
    report = run(cases or seeded(options.seed, options.cases, scores=options.scores), stop_after=options.stop_after)
    print(summary(report))
    kinds = {kind(found.theirs, found.ours): found for found in reversed(report.disagreements)}
    for found in list(kinds.values())[:SHOWN]:
        shrunk = smallest(found.case)
        print(f"\n{show(shrunk)}")
        if options.keep:
            print(f"kept as {files.keep(shrunk.case, 'Found by comparing generated cases: ' + shrunk.lines[0])}")
    return 1 if report.disagreements else 0


def summary(report: Report) -> str:
    rate = report.pods / report.seconds if report.seconds else 0
    return (
        f"{report.pods} pods in {report.cases} clusters: {report.fitting} fit somewhere, on {report.failed} "
        f"kube-scheduler fails, {len(kinds_of_reasons(report))} kinds of reasons; "
        f"{report.seconds:.1f} s ({rate:.0f} pods a second)\n{len(report.disagreements)} disagreements"
    )


def kinds_of_reasons(report: Report) -> set[str]:
    """The reasons without the names of objects."""
    return {re.sub(r'"[^"]*"|[\w-]+/[\w-]+', "…", reason) for reason in report.reasons}


def show(shrunk: Shrunk) -> str:
    return "\n".join(["smallest case:", json.dumps(shrunk.case), *shrunk.lines])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, metavar="N", help="number of generated cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scores", action="store_true", help="compare the scores of generated cases, too")
    parser.add_argument("--file", type=Path, action="append", help="take the cases from this file")
    parser.add_argument("--stop-after", type=int, metavar="N", help="end when so many disagreements are found")
    parser.add_argument("--keep", action="store_true", help=f"keep smallest cases as unit tests in {files.KEPT.name}/")
    parser.add_argument("--expect", type=Path, nargs="+", metavar="FILE", help="only write the expected answers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
