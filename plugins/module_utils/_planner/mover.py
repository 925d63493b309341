# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to leave a node: pods that go, and the pod that comes in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._model import taints
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import HOSTNAME, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.occupant import Occupant
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.pod import Pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Requirement

_UNBOUNDED = 2**31


@dataclass(frozen=True, slots=True)
class Mover:
    """One VM or pod.

    key: namespace/name. leaving: the pods that go, at least one. newcomer: the pod that comes, unplaced and with a key
    of its own or of one that leaves; None if none does. chosen: the planner chooses the node and pins the newcomer to
    it, and those that leave stay until the newcomer is there, as in a live migration; otherwise the scheduler chooses,
    and they are on their way out when it does. only: the nodes that may be chosen, None for any. open: phrases for
    what of the newcomer could not be foreseen. raw: the newcomer as the API would have it, with the same name.
    """

    key: str
    source: str
    leaving: tuple[Occupant, ...]
    newcomer: Pod | None
    chosen: bool = False
    only: frozenset[str] | None = None
    open: tuple[str, ...] = ()
    raw: Object | None = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        """namespace/name of the first pod that goes: a VM and a pod may have the same key."""
        return self.leaving[0].key

    @property
    def may_return(self) -> bool:
        """Whether the scheduler may choose the very node that it leaves, and the more so the emptier that is."""
        newcomer = self.newcomer
        return newcomer is not None and not self.chosen and taints.tolerated(taints.CORDON, newcomer.tolerations)

    @property
    def roams(self) -> bool:
        """Whether nobody can say for sure which node it goes to, but that it leaves its own for good."""
        return self.newcomer is not None and not (self.chosen or self.may_return)

    @property
    def replaces_by_name(self) -> bool:
        """Whether the newcomer can only be made when the one of its name is gone."""
        newcomer = self.newcomer
        return newcomer is not None and any(occupant.key == newcomer.occupant.key for occupant in self.leaving)

    @property
    def parting(self) -> tuple[Occupant, ...]:
        """Those that leave, as they are while the newcomer is placed."""
        if self.replaces_by_name:
            return ()
        return self.leaving if self.chosen else tuple(replace(occupant, terminating=True) for occupant in self.leaving)


def pinned(pod: Pod, hostname: str) -> Pod:
    """The pod with a node selector for a host name, which its own selector may overrule."""
    affinity = pod.node_affinity
    if any(requirement.key == HOSTNAME for requirement in affinity.selector):
        return pod
    requirement = Requirement(HOSTNAME, "In", (hostname,))
    return replace(pod, node_affinity=replace(affinity, selector=(*affinity.selector, requirement)))


def pinned_anywhere(pod: Pod) -> Pod:
    """A pod that fits each node as the pod would if it were pinned to it, but for a least number of domains.

    Which domains count for a spread constraint depends on the nodes that the pod's node selector admits, unless the
    constraint says otherwise. With one node there is one domain, which is never fuller than the others.
    """
    spread = tuple(
        replace(constraint, max_skew=_UNBOUNDED) if constraint.hard and constraint.honors_affinity else constraint
        for constraint in pod.spread
    )
    return pod if spread == pod.spread else replace(pod, spread=spread)


def needs_exact_look(pod: Pod) -> bool:
    """Whether `pinned_anywhere` is not the whole truth."""
    return any(entry.hard and entry.honors_affinity and entry.min_domains > 1 for entry in pod.spread)


def pin(labels: Mapping[str, str]) -> dict[str, str]:
    """The node selector that pins a migration to the node with these labels."""
    return {HOSTNAME: labels[HOSTNAME]}
