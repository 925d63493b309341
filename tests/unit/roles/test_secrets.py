# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines that a role reads come without what their guests are told in confidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROLES = Path(__file__).parents[3] / "roles"
FILES = sorted(ROLES.glob("*/tasks/*.yml"))
# Of a VirtualMachine and a replica set the template holds them, of a VMI the spec; Ignition's stand in annotations.
SECRETIVE = {"VirtualMachineInstance", "VirtualMachine", "VirtualMachineInstanceReplicaSet"}


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    """Those in blocks as well."""
    for task in found or ():
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks(task.get(part))


def reads() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{file.parent.parent.name}: {task['name']}", task["kubernetes.core.k8s_info"])
        for file in FILES
        for task in tasks(yaml.safe_load(file.read_text()))
        if task.get("kubernetes.core.k8s_info", {}).get("kind") in SECRETIVE
    ]


def test_there_are_some() -> None:
    assert reads()


@pytest.mark.parametrize(("title", "arguments"), reads())
def test_they_are_read_without_secrets(title: str, arguments: dict[str, Any]) -> None:
    assert {"spec", "metadata.annotations"} <= set(arguments.get("hidden_fields", ())), title
