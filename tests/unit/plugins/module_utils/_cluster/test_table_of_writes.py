# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of writes in the map of the verbs names what is there, and every file that writes."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster import verbs

_ROW = re.compile(r"^(\w+)\.([A-Za-z_][\w.]*) {2,}\S", re.MULTILINE)
ROWS = [(module, name) for module, name in _ROW.findall(verbs.__doc__ or "") if name != "py"]
FILES = [path for folder in verbs.__path__ for path in Path(folder).glob("*.py")]
WRITES = {"create", "replace", "patch", "delete", "delete_only", "post", "act"}


def writes(path: Path) -> bool:
    """Whether a file asks a client to change something."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    asked = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in WRITES]
    return any(ast.unparse(call.value).endswith("client") for call in asked)


@pytest.mark.parametrize(("module", "name"), ROWS)
def test_what_it_names_is_there(module: str, name: str) -> None:
    assert attrgetter(name)(import_module(f"{verbs.__name__}.{module}"))


def test_every_file_that_writes_is_in_it() -> None:
    found = {path.stem for path in FILES if writes(path)}
    assert {"machines", "leases", "tokens"} <= found
    assert found - {module for module, _name in ROWS} == set()
