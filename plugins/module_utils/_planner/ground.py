# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster made ready for plans: what costs in proportion to all of it, once for as many drains as are planned.

Plans of the same snapshot share what they do not change; of the rest each ground has a copy, of references alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, surroundings
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import (
    title,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.state import ClusterState, parsed_cluster


class Ground:
    """`nodes`: names. `vmis`: as namespace/name. `state`: each drain cordons its own nodes in it, and moves pods back.

    All raise `SelectorError`, `QuantityError`, `MissingLibrary` when they are used for the first time.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.nodes = snapshot.nodes.keys()
        self.vmis = frozenset(map(title, snapshot.lists.get("vmis") or ()))

    @cached_property
    def cluster(self) -> Surroundings:
        found = self._snapshot.once(surroundings)
        return replace(found, workloads=found.workloads.copy())

    @cached_property
    def state(self) -> ClusterState:
        return self._snapshot.once(parsed_cluster).state()

    def pods_on(self, nodes: Collection[str]) -> list[Object]:
        return [pod for name in nodes for pod in self._bound.get(name, ())]

    def vmis_on(self, nodes: Collection[str]) -> list[Object]:
        """Those that run there, by the pods in which they do."""
        owned = ((pod["metadata"], controller(pod) or {}) for pod in self.pods_on(nodes))
        names = (
            f"{metadata.get('namespace') or 'default'}/{owner['name']}"
            for metadata, owner in owned
            if owner.get("kind") == VMI
        )
        found = map(self.cluster.workloads.vmi, dict.fromkeys(names))
        return [vmi for vmi in found if vmi is not None and (vmi.get("status") or {}).get("nodeName") in nodes]

    def take_off(self, node: str, pods: Collection[str]) -> None:
        """Pods, as namespace/name, are no longer on a node. Here and below, the state is changed by others."""
        for pod in self._bound[node]:
            if title(pod) in pods:
                self.cluster.workloads.forget_pod(pod)
        self._bound[node] = [pod for pod in self._bound[node] if title(pod) not in pods]

    def put_on(self, node: str, pod: Object) -> None:
        """In place of the one of its name, which is there already as the target of a migration that has begun."""
        self.take_off(node, {title(pod)})
        self._bound[node] = [*self._bound[node], pod]
        self.cluster.workloads.take_pod(pod)

    def put_vmi(self, vmi: Object) -> None:
        """In place of the one of the same name."""
        self.cluster.workloads.take_vmi(vmi)

    def end_migrations(self, vmis: Iterable[str]) -> None:
        """Of these VMIs, by namespace/name."""
        ended = {tuple(name.split("/", 1)) for name in vmis}
        left = {key: migration for key, migration in self.cluster.migrations.items() if key not in ended}
        if len(left) < len(self.cluster.migrations):
            self.cluster = replace(self.cluster, migrations=left)

    def miss(self, pods: Iterable[Object]) -> None:
        """Nothing comes instead of these pods, which their budgets go on to expect."""
        self.cluster = replace(self.cluster, budgets=self.cluster.budgets.without(pods))

    @cached_property
    def _bound(self) -> defaultdict[str, list[Object]]:
        return defaultdict(list, self._snapshot.pods_by_node)
