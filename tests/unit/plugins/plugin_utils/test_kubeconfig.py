# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is meant by a kubeconfig, and that no error shows more of it than a path."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.action import ActionBase
from ansible_collections.virtops.kubevirt.plugins.action.maintenance_run import ActionModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _kubeconfig

CANARY = "canary-6b1f"
CONFIG = {"apiVersion": "v1", "users": [{"name": "u", "user": {"token": CANARY}}]}
# An entry field of one line makes this of a text that is pasted into it.
RUN_TOGETHER = yaml.safe_dump(CONFIG).replace("\n", "")

ROOT = Path(__file__).parents[4]
PATHS = ["~/.kube/config", "a b/{c}.yml", "c:/config", "config:old", " config\n"]
TEXTS = [
    RUN_TOGETHER,
    *(f"{start}{form(CONFIG)}" for form in (yaml.safe_dump, json.dumps) for start in ("", "\n ", "---\n")),
]

Act = Callable[..., Any]


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch) -> Act:
    """The kubeconfig that the module gets for the one of its task."""

    def execute(_action: ActionBase, *, module_args: dict[str, Any], **_others: Any) -> dict[str, Any]:
        return {"got": module_args.get("kubeconfig"), "invocation": {}}

    def run(kubeconfig: object, transport: str = "local") -> Any:
        task = SimpleNamespace(
            args={"run": "patch", "kubeconfig": kubeconfig},
            action="virtops.kubevirt.maintenance_run",
            async_val=0,
            check_mode=False,
            get_search_path=list,
        )
        connection = SimpleNamespace(transport=transport, _shell=SimpleNamespace(tmpdir="/nowhere"))
        return ActionModule(task, connection, None, DataLoader(), None).run()["got"]

    monkeypatch.setattr(ActionBase, "_execute_module", execute)
    return run


@pytest.mark.parametrize("transport", ["local", "ssh"])
@pytest.mark.parametrize(
    "given",
    [
        CONFIG,
        yaml.safe_dump(CONFIG),
        yaml.safe_dump(CONFIG).replace("\n", "\r\n"),
        f"---\n{yaml.safe_dump(CONFIG)}",
        json.dumps(CONFIG),
        f"\n  {json.dumps(CONFIG, indent=2)}\n",
        json.dumps(CONFIG, separators=(",", ":")),
    ],
)
def test_a_text_is_a_mapping_to_the_module(act: Act, given: object, transport: str) -> None:
    assert act(given, transport) == CONFIG


@pytest.mark.parametrize(
    "given",
    [
        f"{yaml.safe_dump(CONFIG)}: [",
        json.dumps(CONFIG)[:-1],
        json.dumps([CONFIG], indent=2),
        f"---\n{yaml.safe_dump(CONFIG)}---\n{yaml.safe_dump(CONFIG)}",
        f"token\n{CANARY}",
        RUN_TOGETHER,
    ],
)
def test_another_text_is_refused_unshown(act: Act, given: str) -> None:
    with pytest.raises(AnsibleActionFail) as refused:
        act(given)
    assert str(refused.value) == (
        "Cannot read the kubeconfig: its text is no mapping in JSON or YAML. Correct it, or give the path of a file."
    )
    assert refused.value.__suppress_context__


def test_of_what_may_be_a_path_no_more_is_shown_than_one_has(act: Act) -> None:
    """Though it is no name that a file can have."""
    with pytest.raises(AnsibleActionFail, match="it is not there, nor among the files") as refused:
        act("a" * 5_000 + CANARY)
    assert CANARY not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_path_is_one_with_an_end_of_line_too(act: Act, tmp_path: Path, end: str) -> None:
    (tmp_path / "mine").write_text("kind: Config\n")
    assert act(f"{tmp_path}/mine{end}") == f"{tmp_path}/mine"


@pytest.mark.parametrize("given", [None, "", " \n"])
def test_a_blank_one_is_none(act: Act, given: str | None) -> None:
    assert act(given) is None


def test_playbooks_tell_texts_from_paths_as_modules_do() -> None:
    """Those that tell the path in a command: what another one takes for a path is shown there."""
    words = [
        line
        for folder in ("playbooks", "roles")
        for path in sorted((ROOT / folder).rglob("*.yml"))
        for line in path.read_text().splitlines()
        if "kubeconfig" in line and "search(" in line
    ]
    patterns = [
        ast.literal_eval(found) for line in words for found in re.findall(r'trim is not search\((".*?")\)', line)
    ]
    assert len(patterns) == len(words) == 2, words
    for given in [*PATHS, *TEXTS, "", "token:", json.dumps(CONFIG, separators=(",", ":"))]:
        told = [re.search(pattern, given.strip()) is not None for pattern in patterns]
        assert told == [is_text(given)] * 2, given
    assert not any(map(is_text, PATHS))
    assert all(map(is_text, TEXTS))


def is_text(given: str) -> bool:
    try:
        return bool(_kubeconfig.meant(given) != given.strip())
    except InvalidRequest:
        return True
