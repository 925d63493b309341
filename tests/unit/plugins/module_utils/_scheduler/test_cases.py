# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases with kube-scheduler's own answers; each file says in `#` why it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential import files, ours
from differential.compare import differences


@pytest.mark.parametrize("path", files.kept(), ids=lambda path: path.stem)
def test_verdict_is_kube_schedulers(path: Path) -> None:
    (case,) = files.read(path)
    for expected, mine in zip(case["expected"], ours.answers(case), strict=True):
        assert not differences(expected, mine), case["#"]
