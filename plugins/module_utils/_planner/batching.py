# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes of a run had best be out of service together next, before it is tried whether that is possible.

A VM is moved once if there is room for it on a node that is maintained already, or is not to be; otherwise it is moved
again later. So nodes come first whose VMs find such room; where there is none yet, the one with the fewest VMs opens it
for the others. Nodes whose VMs would find it only after the batch are left to the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.batch_rules import BatchRules
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.room import Room

# Of each of these KubeVirt needs one that runs.
_COMPONENTS = ("virt-api", "virt-controller")


class Batching:
    """`left`: names of the nodes that are still to be maintained, in the order in which they were given.

    `regions`: nodes that VMs cannot leave, as it is before the run. bound: VMs, as namespace/name, that migrate nowhere
    in any case.
    """

    def __init__(
        self, ground: Ground, nodes: Sequence[str], rules: BatchRules, bound: frozenset[str] = frozenset()
    ) -> None:
        self._ground, self._rules = ground, rules
        self.left = list(nodes)
        self._position = {name: number for number, name in enumerate(nodes)}
        self._room = Room(ground, nodes, bound)
        self.regions = self._room.regions()
        self._components = {name: Counter(_component(ground, name)) for name in ground.nodes}
        caps = ground.cluster.configuration.migrations
        # More nodes would only share the migrations that KubeVirt lets run at once.
        self._most = rules.size or max(1, -(-caps.parallel_per_cluster // max(1, caps.parallel_outbound_per_node)))
        self._group = ""

    def proposal(self, put_off: Collection[str] = (), most: int | None = None) -> list[str]:
        """The nodes of the next batch, in the order in which they were given; none if all are put off.

        most: how many nodes, if fewer than otherwise.
        """
        chosen: list[str] = []
        open_nodes = [name for name in self._in_turn() if name not in put_off]
        estimate = self._room.estimate(self.left)
        while len(chosen) < min(self._most, most or self._most):
            candidates = [name for name in open_nodes if self._may_join(name, chosen)]
            if not candidates:
                break
            if not self._rules.free:
                chosen.append(candidates[0])
                continue
            best = estimate.best([self._position[name] for name in candidates])
            if chosen and (best.short or (self._rules.size is None and best.regret > 0)):
                break
            chosen.append(candidates[best.place])
            estimate.take(self._position[chosen[-1]])
        return sorted(chosen, key=self._position.__getitem__)

    def done(self, nodes: Collection[str], touched: Iterable[str]) -> None:
        """Nodes are maintained. touched: those, and all that something has come to."""
        if self._rules.together:
            self._group = self._value(next(iter(nodes)), self._rules.together)
        self.left = [name for name in self.left if name not in nodes]
        for name in touched:
            self._components[name] = Counter(_component(self._ground, name))
            if name in self._position:
                self._room.look(name)

    def _in_turn(self) -> list[str]:
        """Those that may come next."""
        rules, found = self._rules, self.left
        for wanted in (
            [name for name in found if name in rules.first],
            [name for name in found if name not in rules.last],
        ):
            if wanted:
                found = wanted
                break
        same = [name for name in found if rules.together and self._value(name, rules.together) == self._group]
        return same or found

    def _may_join(self, name: str, chosen: Sequence[str]) -> bool:
        if name in chosen:
            return False
        if any(self._value(name, key) and self._value(name, key) == self._value(other, key)
               for key in self._rules.apart for other in chosen):  # fmt: skip
            return False
        together = self._rules.together
        if together and any(self._value(name, together) != self._value(other, together) for other in chosen):
            return False
        return not chosen or not any(self._would_end(component, {*chosen, name}) for component in _COMPONENTS)

    def _would_end(self, component: str, nodes: Collection[str]) -> bool:
        return any(self._components[name][component] for name in nodes) and not any(
            found[component] for name, found in self._components.items() if name not in nodes
        )

    def _value(self, name: str, key: str) -> str:
        table = self._ground.state.nodes
        return table.nodes[table.index[name]].labels.get(key, "")


def _component(ground: Ground, node: str) -> list[str]:
    """Of KubeVirt's own components, those that a node has, once for each of their pods."""
    namespace = ground.cluster.configuration.namespace
    metadata = (raw["metadata"] for raw in ground.pods_on([node]))
    names = ((entry.get("labels") or {}).get("kubevirt.io") for entry in metadata if entry["namespace"] == namespace)
    return [name for name in names if name in _COMPONENTS]
