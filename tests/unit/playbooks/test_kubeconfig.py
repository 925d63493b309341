# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubeconfig of the collection's playbooks is sought where whoever starts them stands, or is itself what is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from unit.playbooks.playing import play

pytestmark = pytest.mark.playbook

CANARY = "canary-6b1f"


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


def test_a_module_that_cannot_begin_shows_no_credentials(tmp_path: Path) -> None:
    """It does not say itself what it was called with, and which of that is secret."""
    options = {"run": "patch", "api_key": CANARY, "kubeconfig": {"users": [{"token": CANARY}]}}
    task = {"virtops.kubevirt.maintenance_run": options, "register": "ended", "ignore_errors": True}
    tasks = [task, {"ansible.builtin.debug": {"var": "ended"}}]
    content = yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}])
    told, status = play(tmp_path, content, "-vvv", interpreter="/bin/false")
    assert (status, '"ended": {' in told, CANARY in told) == (0, True, False), told


@pytest.mark.parametrize("form", [yaml.safe_dump, json.dumps])
@pytest.mark.parametrize("end", ["", "\n: [", "\r\n"])
def test_a_text_is_no_path_and_is_not_shown(tmp_path: Path, form: Callable[[object], str], end: str) -> None:
    """As the text area of a survey gives it, whole or with a mistake."""
    user = {"name": "maintainer", "user": {"token": CANARY}}
    content = {"kind": "Config", "current-context": "nowhere", "users": [user], "contexts": [], "clusters": []}
    given = {"abort_run": "patch", "abort_kubeconfig": form(content) + end}
    told, status = play(tmp_path, "- import_playbook: virtops.kubevirt.abort\n", "-vvv", "-e", json.dumps(given))
    assert (status, CANARY in told) == (2, False), told
    refused = "Cannot read the kubeconfig: its text is no mapping in JSON or YAML" in told
    # That is, it was read, and is a secret: what it says is struck from the message.
    read = "its settings are not usable" in told
    assert (refused, read) == (end == "\n: [", end != "\n: ["), told
