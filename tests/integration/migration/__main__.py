# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Try as many predicted migrations as wanted, cluster after cluster.

    PYTHONPATH=<collections>:tests python -m integration.migration --verdicts 300 [--testbed NAME]

Without a name it makes a testbed and takes it down. Exits with 1 when a migration did not go as was said.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from integration.migration.clusters import cluster
from integration.migration.verdicts import Tally, try_fulfilled, try_refused
from testbed import cluster as testbeds
from testbed.api import Api
from testbed.home import Home

# Of one cluster.
REFUSED, FULFILLED = 115, 36
TIME_SCALE = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.migration", description="Try predicted migrations.")
    parser.add_argument("--verdicts", type=int, default=300, help="how many at least")
    parser.add_argument("--testbed", help="the name of one that is up")
    parser.add_argument("--seed", type=int, default=0, help="of the first cluster")
    options = parser.parse_args()
    with testbed(options.testbed) as api:
        tally = Tally()
        seed = options.seed
        while tally.tried < options.verdicts:
            with cluster(api, seed):
                try_refused(api, tally.refused + REFUSED, tally)
                try_fulfilled(api, tally.fulfilled + FULFILLED, tally)
            print(
                f"after cluster {seed}: {tally.refused} refused, {tally.repeated} of them asked twice, "
                f"{tally.fulfilled} fulfilled, {len(tally.wrong)} wrong"
            )
            seed += 1
    for reason, count in tally.reasons.most_common():
        print(f"{count:6} {reason}")
    for line in tally.wrong:
        print(line)
    return 1 if tally.wrong else 0


@contextmanager
def testbed(name: str | None) -> Iterator[Api]:
    home = Home(name or f"migration-{os.getpid()}")
    if not name:
        testbeds.up(home, time_scale=TIME_SCALE, seed=0, owner_pid=os.getpid())
    try:
        with Api(home.kubeconfig()) as api:
            yield api
    finally:
        if not name:
            testbeds.down(home)


if __name__ == "__main__":
    sys.exit(main())
