# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that is started with --limit is refused, whomever that leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.playbooks.playing import play

IMPORTED = "- import_playbook: virtops.kubevirt.rolling_maintenance\n"


@pytest.mark.parametrize("limit", ["n1", "localhost,n1", "all"])
def test_a_limit_is_refused(tmp_path: Path, limit: str) -> None:
    told, status = play(tmp_path, IMPORTED, "-i", "localhost,n1,n2", "--limit", limit)
    assert status != 0, told
    assert f"The run was started with --limit {limit}, but what it maintains is planned as a whole" in told
    assert told.count("leave --limit out") <= 2, "once by the task, and once in the summary of errors"


def test_without_a_limit_the_run_is_planned(tmp_path: Path) -> None:
    told, status = play(tmp_path, IMPORTED, "-i", "localhost,n1,n2")
    assert (status != 0, "give one of rolling_maintenance_tasks" in told) == (True, True), told
