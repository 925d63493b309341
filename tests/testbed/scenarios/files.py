# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios that are written by hand, one YAML file each, in this folder.

nodes:      # keyword arguments of testbed.nodes.fake_node
  - {name: kni-worker, cpu: 8, memory: 32Gi}
objects:    # Kubernetes objects, as they would be given to kubectl apply
  - {apiVersion: v1, kind: Namespace, metadata: {name: customapp}}
settled: {pods: 0, vmis: 0}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from testbed.home import TestbedError
from testbed.nodes import CPUS, fake_node
from testbed.scenarios.model import Scenario, Settled

FOLDER = Path(__file__).resolve().parent


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read(path: Path) -> Scenario:
    """Raises TestbedError when the file is no scenario."""
    try:
        data: dict[str, Any] = yaml.safe_load(path.read_text())
        if not isinstance(data, dict):
            raise TypeError("a list or a single value is not a scenario")
        unknown = set(data) - {"nodes", "objects", "settled"}
        if unknown:
            raise ValueError(f"it has no part named {', '.join(sorted(unknown))}")
        for node in data["nodes"]:
            if node.get("cpu_model", next(iter(CPUS))) not in CPUS:
                raise ValueError(f"node {node['name']} has none of the CPU models {', '.join(CPUS)}")
        nodes = [fake_node(**node) for node in data["nodes"]]
        return Scenario(path.stem, (*nodes, *data["objects"]), Settled(**data["settled"]))
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise TestbedError(f"Could not read a scenario from {path}: {error}.") from error
