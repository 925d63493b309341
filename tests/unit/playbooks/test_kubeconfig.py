# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubeconfig of the collection's playbooks is sought where whoever starts them stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook


@pytest.mark.parametrize(
    ("playbook", "given"),
    [
        ("abort", {"abort_run": "patch", "abort_kubeconfig": "mine.kubeconfig"}),
        ("access", {"access_kubeconfig": "mine.kubeconfig"}),
    ],
)
def test_a_relative_path_starts_from_the_folder_in_which_it_runs(
    tmp_path: Path, playbook: str, given: dict[str, str]
) -> None:
    begun_in = tmp_path / "begun in"
    begun_in.mkdir()
    (begun_in / "mine.kubeconfig").write_text("kind: Config\ncurrent-context: nowhere\n")
    content = f"- import_playbook: virtops.kubevirt.{playbook}\n"
    told, status = play(tmp_path, content, "-e", json.dumps(given), begun_in=begun_in)
    assert status == 2, told
    assert "nowhere" in told, told  # that is, the file was read
