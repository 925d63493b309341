# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at moves see the pods of all namespaces in which something has its turn."""

from __future__ import annotations

from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.move_looks import MoveLooks
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.observation import Questions


class Pods:
    """A client that lists one pod in each namespace. `asked`: of which lists were read, in their order."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, path: str, _attempted: str) -> Any:
        namespace = path.split("/")[4]
        self.asked.append(namespace)
        metadata = {"namespace": namespace, "name": "web", "uid": f"uid-{namespace}"}
        return {"items": [{"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {}}]}


def test_who_has_the_next_turn_in_another_namespace_takes_none_away() -> None:
    """Before the next look: as what it waited for had gone, or in a dry run, where all have their turns."""
    client, migrations = Pods(), None
    looks = MoveLooks(client, migrations)  # type: ignore[arg-type]
    for namespace in ("a", "b"):
        looks.read_pods([namespace])
        looks.hasten()
    looks.turn_to(["a", "b"], migrating=False)
    assert set(looks.look(Questions(), 0.0).pods) == {"uid-a", "uid-b"}
    assert client.asked == ["a", "b"], "the next look lists nothing again"
