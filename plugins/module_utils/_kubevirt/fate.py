# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain, an eviction or the loss of its node does to a VM.

Follows KubeVirt's webhook on evictions (eviction.py), its owners' controllers (successors.py), and
pkg/virt-controller/watch/vmi/lifecycle.go: a VMI whose pod is gone has failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import Blocker
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.find import Surroundings, blockers
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.eviction import EvictionVerdict, Ruling, ruling
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.successors import Revival, revival
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migratability import is_live_migratable
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    FAILED,
    JsonObject,
    Object,
    has_ended,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.taints import Taint, toleration

_UNREACHABLE = Taint("node.kubernetes.io/unreachable", "", "NoExecute")
# What admission gives to pods that do not say.
_DEFAULT_SECONDS = 300


class Event(Enum):
    """A drain evicts the pods of a node to which none comes back; an eviction leaves the node open."""

    DRAIN = "drain"
    EVICTION = "eviction"
    NODE_FAILURE = "node_failure"


class FateOutcome(Enum):
    """BLOCKS: it stays where it is, and who waits for it waits in vain. UNKNOWN: its owner is not among the lists."""

    MIGRATES = "migrate"
    RESTARTS = "restart"
    STAYS_DOWN = "stay_down"
    BLOCKS = "block"
    UNKNOWN = "unknown"


class Where(Enum):
    """Where the VM runs afterwards: on another node, on any, or nowhere new."""

    ELSEWHERE = "elsewhere"
    ANYWHERE = "anywhere"
    NOWHERE = ""


class Awaits(Enum):
    """What has to come first: nothing, that the lost node is back or fenced, or somebody else's controller."""

    NOTHING = ""
    FENCING = "fencing"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Fate:
    """`sentence`: what happens and why. `remedy`: how it would go better, a sentence; empty where it goes well."""

    event: Event
    outcome: FateOutcome
    sentence: str
    remedy: str = ""
    where: Where = Where.NOWHERE
    awaits: Awaits = Awaits.NOTHING

    def to_json(self) -> JsonObject:
        return {
            "event": self.event.value,
            "outcome": self.outcome.value,
            "where": self.where.value,
            "awaits": self.awaits.value,
            "message": self.sentence,
            "remedy": self.remedy,
        }


def fate(vmi: Object, event: Event, around: Surroundings) -> Fate:
    """Raises `QuantityError`."""
    if has_ended(vmi):
        again = revival(vmi, around.workloads, failed=vmi["status"]["phase"] == FAILED)
        return _after(event, again, "The VM has ended already", Awaits.NOTHING)
    if event is Event.NODE_FAILURE:
        return _lost(vmi, around)
    return _evicted(vmi, event, around)


def _evicted(vmi: Object, event: Event, around: Surroundings) -> Fate:
    answer = ruling(vmi, around.workloads.source_pod(vmi), around.configuration, around.budgets)
    if answer.verdict is EvictionVerdict.EVACUATES:
        return _evacuated(vmi, event, answer, around)
    if answer.verdict is EvictionVerdict.MARKS:
        return Fate(
            event,
            FateOutcome.BLOCKS,
            f"The eviction is refused until some other controller has moved the VM, as {answer.reason}.",
            "Migrate it yourself, or see that the controller which the VM relies on runs.",
            awaits=Awaits.EXTERNAL,
        )
    if answer.verdict is EvictionVerdict.REFUSED:
        remedy = "Stop or restart the VM yourself, or remove what refuses the eviction."
        return Fate(event, FateOutcome.BLOCKS, f"The eviction is refused, as {answer.reason}.", remedy)
    again = revival(vmi, around.workloads, failed=False)
    told = _after(event, again, f"The eviction shuts the guest down, as {answer.reason}", Awaits.NOTHING)
    return told if told.outcome is FateOutcome.UNKNOWN else _with_remedy(told, _sparing(vmi))


def _evacuated(vmi: Object, event: Event, answer: Ruling, around: Surroundings) -> Fate:
    lasting = [blocker for blocker in blockers(around.candidate(vmi)) if blocker.forbids and not blocker.passing]
    if lasting:
        return _held(event, lasting[0])
    sentence = f"The eviction is refused, and KubeVirt migrates the VM to another node, as {answer.reason}."
    return Fate(event, FateOutcome.MIGRATES, sentence, where=Where.ELSEWHERE)


def _held(event: Event, blocker: Blocker) -> Fate:
    sentence = f"The eviction is refused until KubeVirt has migrated the VM, which it cannot: {blocker.told}."
    return Fate(event, FateOutcome.BLOCKS, sentence, blocker.remedy)


def _sparing(vmi: Object) -> str:
    if is_live_migratable(vmi):
        return "Set its evictionStrategy to LiveMigrate, or migrate it before."
    return "Plan for its downtime, or make it live-migratable."


def _lost(vmi: Object, around: Surroundings) -> Fate:
    again = revival(vmi, around.workloads, failed=True)
    delay = _seconds_until_deletion(around.workloads.source_pod(vmi))
    if again.starts and again.new and delay is not None:
        sentence = (
            f"{delay} s after Kubernetes has given the node up it deletes the VM's pod, and {again.reason}, on another "
            "node, even if the old guest still runs on a node that is only cut off."
        )
        remedy = "Fence lost nodes, so that no guest runs twice."
        return Fate(Event.NODE_FAILURE, FateOutcome.RESTARTS, sentence, remedy, Where.ELSEWHERE)
    begin = "The guest is gone with its node, which KubeVirt believes once the node is back or fenced"
    told = _after(Event.NODE_FAILURE, again, begin, Awaits.FENCING)
    return _with_remedy(told, "Fence lost nodes (taint node.kubernetes.io/out-of-service, or delete the Node).")


def _after(event: Event, again: Revival, begin: str, awaits: Awaits) -> Fate:
    """What follows the end of the guest."""
    if again.starts is None:
        return Fate(
            event, FateOutcome.UNKNOWN, f"{begin}; {again.reason}.", "Add its owner to the lists.", awaits=awaits
        )
    if not again.starts:
        return Fate(event, FateOutcome.STAYS_DOWN, f"{begin}, and {again.reason}.", awaits=awaits)
    where = Where.ELSEWHERE if event is Event.DRAIN else Where.ANYWHERE
    on = "another node" if where is Where.ELSEWHERE else "whichever node the scheduler takes"
    return Fate(event, FateOutcome.RESTARTS, f"{begin}, and {again.reason}, on {on}.", where=where, awaits=awaits)


def _with_remedy(told: Fate, remedy: str) -> Fate:
    return Fate(told.event, told.outcome, told.sentence, told.remedy or remedy, told.where, told.awaits)


def _seconds_until_deletion(pod: Object | None) -> int | None:
    """How long Kubernetes leaves the pod of a lost node alone, from the taint on; None for never.

    Without a pod, that of one that does not say. Follows pkg/controller/tainteviction/taint_eviction.go of Kubernetes:
    each pod is deleted when it has tolerated the taint long enough. Nobody is left there to confirm the deletion, so
    the pod stays until the node is back, is fenced (taint node.kubernetes.io/out-of-service), is deleted, or somebody
    forces the deletion.
    """
    if pod is None:
        return _DEFAULT_SECONDS
    tolerating = [entry for entry in pod["spec"].get("tolerations") or () if toleration(entry).tolerates(_UNREACHABLE)]
    limits = [entry["tolerationSeconds"] for entry in tolerating if entry.get("tolerationSeconds") is not None]
    if not tolerating:
        return 0
    return max(0, min(limits)) if limits else None
