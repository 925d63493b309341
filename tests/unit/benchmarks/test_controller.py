# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller's benchmark is told."""

from __future__ import annotations

import pytest
from benchmarks.controller import parsed


@pytest.mark.parametrize(
    ("words", "sizes"),
    [("", (3, 33, 3)), ("--batch 2", (2, 22, 2)), ("--nodes 60 --vms 600 --batch 3", (60, 600, 3))],
)
def test_without_more_it_is_a_single_batch(words: str, sizes: tuple[int, int, int]) -> None:
    options = parsed(words.split())
    assert (options.nodes, options.vms, options.batch) == sizes


@pytest.mark.parametrize("words", ["--batch 0", "--nodes 2", "--nodes 60 --vms 59"])
def test_what_cannot_be_measured_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(words.split())
    assert "there has to be a batch of nodes, and a VM on each node at least" in capsys.readouterr().err
