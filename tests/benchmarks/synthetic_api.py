# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server with a cluster of any size, which exists only while it is asked for: objects are made page by page.

Each object is a copy of one that a real API server gave (samples.json, managed fields and all) under another name, so
that pages have the length and depth of real ones. A third of the pods are launcher pods, as in clusters.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import BY_NAME

from unit.plugins.support.fake_api import Answer, FakeApi, Request

PODS_PER_NODE = 20
_PODS_PER_MACHINE = 3
SAMPLES = {
    name: json.dumps(sample, separators=(",", ":"))
    for name, sample in json.loads(Path(__file__).with_name("samples.json").read_text()).items()
}


@dataclass
class SyntheticApi(FakeApi):
    nodes: int = 0

    def __post_init__(self) -> None:
        self.lists |= {"kubevirts": [json.loads(SAMPLES["kubevirt"])], "namespaces": [json.loads(SAMPLES["namespace"])]}

    @property
    def pods(self) -> int:
        return self.nodes * PODS_PER_NODE

    @property
    def machines(self) -> int:
        return -(-self.pods // _PODS_PER_MACHINE)

    def answer(self, request: Request) -> Answer:
        sizes = {"nodes": self.nodes, "pods": self.pods, "vmis": self.machines}
        name = next((name for name in sizes if BY_NAME[name].path == request.path), None)
        return super().answer(request) if name is None else self._page(name, sizes[name], request)

    def _page(self, name: str, size: int, request: Request) -> Answer:
        start = int(request.query.get("continue", 0))
        end = min(start + int(request.query["limit"]), size)
        items = ",".join(self._item(name, number) for number in range(start, end))
        token = f'"continue":"{end}",' if end < size else ""
        return Answer(200, f'{{"metadata":{{{token}"resourceVersion":"7"}},"items":[{items}]}}'.encode())

    def _item(self, name: str, number: int) -> str:
        if name == "nodes":
            return _renamed("node", f"node-{number:05}")
        if name == "vmis":
            number *= _PODS_PER_MACHINE
            return _renamed("vmi", f"vm-{number:06}", self._node(number))
        if number % _PODS_PER_MACHINE:
            return _renamed("pod", f"app-{number:06}", self._node(number))
        return _renamed("launcher", f"virt-launcher-{number:06}", self._node(number), f"vm-{number:06}")

    def _node(self, number: int) -> str:
        return f"node-{number % self.nodes:05}"


def _renamed(sample: str, name: str, node: str = "", machine: str = "") -> str:
    return SAMPLES[sample].replace("@NAME@", name).replace("@NODE@", node).replace("@VM@", machine)
