# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module without the libraries that every use needs says how to install them, for the Python that lacks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODULES = sorted(path.stem for path in (Path(__file__).parents[4] / "plugins/modules").glob("*.py"))
# The least that each takes.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "access_account": {"namespace": "n", "name": "a", "state": "absent"},
    "access_kubeconfig": {"namespace": "n", "name": "a", "path": "p"},
    "access_review": {"roles": ["drain"]},
    "cluster_snapshot": {"path": "p"},
    "maintenance_plan": {"snapshot": "s", "path": "p", "nodes": ["n1"]},
    "maintenance_run": {"run": "r"},
    "node_drain": {"name": "n1", "owner": "me"},
    "node_maintenance": {"name": "n1", "owner": "me"},
    "node_readiness": {"name": "n1"},
    "node_topology": {"topology": []},
    "pod_eviction": {"pods": []},
    "rebalance_plan": {},
    "vmi_migration": {"vmis": []},
    "vmi_replicaset": {"name": "r", "namespace": "n"},
}
RUN = """
import importlib, json, sys
from ansible.module_utils.testing import patch_module_args
with patch_module_args(json.loads(sys.argv[2])):
    importlib.import_module("ansible_collections.virtops.kubevirt.plugins.modules." + sys.argv[1]).main()
"""


def told(folder: Path, module: str, library: str) -> str:
    """What the module fails with where the library cannot be imported."""
    (folder / f"{library}.py").write_text("raise ImportError")
    paths = {"PYTHONPATH": f"{folder}:{os.environ['PYTHONPATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", RUN, module, json.dumps(ARGUMENTS[module])]
    done = subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    message: str = json.loads(done.stdout.splitlines()[-1])["msg"]
    return message


# Without PyYAML it is that which cannot be imported, either.
@pytest.mark.parametrize("library", ["kubernetes", "yaml"])
@pytest.mark.parametrize("module", [name for name in MODULES if name != "take_variables"])
def test_a_hidden_library(tmp_path: Path, module: str, library: str) -> None:
    message = told(tmp_path, module, library)
    assert "the required Python library (kubernetes)" in message
    assert f"Python {sys.executable}" in message
