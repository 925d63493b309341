# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection says of migrations, against what becomes of them: a part of what integration.migration tries."""

from __future__ import annotations

from integration.migration.clusters import cluster
from integration.migration.verdicts import Tally, try_fulfilled, try_refused
from testbed.handle import RunningTestbed

SEED = 1
REFUSED, FULFILLED = 45, 15
# Of 45 refusals, each for one to five reasons.
FEWEST_REASONS = 7


def test_migrations_go_as_was_said_beforehand(testbed: RunningTestbed) -> None:
    tally = Tally()
    with cluster(testbed.api, SEED):
        try_refused(testbed.api, REFUSED, tally)
        try_fulfilled(testbed.api, FULFILLED, tally)
    assert tally.wrong == []
    assert (tally.refused, tally.fulfilled) == (REFUSED, FULFILLED)
    assert len(tally.reasons) >= FEWEST_REASONS, sorted(tally.reasons)
