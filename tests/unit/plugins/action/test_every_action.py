# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module of the action group is listened to while it runs, and nothing of that is seen in its result."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import ansible_collections.virtops.kubevirt as collection
from ansible.plugins.action import ActionBase
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _progress

ROOT = Path(next(iter(collection.__path__)))
MODULES: list[str] = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["action_groups"]["own"]
PLUGINS = f"{collection.__name__}.plugins"
LINE = "API server busy (429), trying again since 02:14:07"

Act = Callable[[str], dict[str, Any]]


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch) -> Act:
    """The result of a module's action, where the module does nothing but tell a line and return what it was given."""

    def execute(_action: ActionBase, *, module_args: dict[str, Any], **_others: Any) -> dict[str, Any]:
        Progress.of(module_args).tell(LINE)
        return {"changed": False, "invocation": {"module_args": module_args}}

    def run(name: str) -> dict[str, Any]:
        task = SimpleNamespace(
            args={"host": "server"}, action=f"virtops.kubevirt.{name}", async_val=0, check_mode=False
        )
        connection = SimpleNamespace(transport="local", _shell=SimpleNamespace(tmpdir="/nowhere"))
        plugin = importlib.import_module(f"{PLUGINS}.action.{name}")
        result: dict[str, Any] = plugin.ActionModule(task, connection, None, None, None).run()
        return result

    monkeypatch.setattr(ActionBase, "_execute_module", execute)
    return run


@pytest.mark.parametrize("name", MODULES)
def test_its_action_shows_what_it_tells_meanwhile(act: Act, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    shown: list[tuple[str, bool]] = []
    monkeypatch.setattr(_progress.display, "display", lambda line, *, stderr: shown.append((line, stderr)))
    assert act(name) == {"changed": False, "invocation": {"module_args": {"host": "server"}}}
    assert shown == [(LINE, True)]


@pytest.mark.parametrize("name", MODULES)
def test_it_takes_what_its_action_gives(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given: dict[str, Any] = {}
    module = importlib.import_module(f"{PLUGINS}.modules.{name}")
    monkeypatch.setattr(module, "run", lambda _work, **settings: given.update(settings))
    module.main()
    assert given["argument_spec"].get("_progress") == {"type": "str"}
