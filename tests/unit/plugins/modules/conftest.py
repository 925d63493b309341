# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._module import drain_task
from ansible_collections.virtops.kubevirt.plugins.modules import node_drain

from unit.plugins.support.draining_api import QUICK
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.unhurried import unhurried


@pytest.fixture(autouse=True)
def unhurried_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    unhurried(monkeypatch)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, seconds in QUICK:
        monkeypatch.setattr(module, name, seconds)


@pytest.fixture(autouse=True)
def landings_seen_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nobody schedules, so a pod that comes instead of another does so at once or never."""
    monkeypatch.setattr(drain_task, "_LAND_WITHIN", 1.0)


@pytest.fixture
def drain(run_module: ModuleRunner, connection: dict[str, Any]) -> Any:
    """node_drain of n1, outside of a run, waiting to be called with more settings."""
    return partial(run_module, node_drain.main, **connection, name="n1", owner="me", cordon=True, wait_timeout=20)
