# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands against a live migration before the scheduler is asked: what a rule gets, and what it tells.

A rule is a function from a `Candidate` to any number of `Blocker`s; registry.py lists them in the order in which
KubeVirt would stumble over them: first what virt-api refuses, then what keeps virt-controller from making a target pod,
then what it overlooks. Rules decide by what is known: a fact that was not given blocks nothing. A `NoTargetPod` comes
instead of a migration's target pod when KubeVirt cannot make one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object


@dataclass(frozen=True, slots=True)
class NoTargetPod:
    """KubeVirt tries again and again, and the migration stays Pending.

    `id`: stable, as of blockers. `problem`: a clause about the VMI, as in "its node n1 does not exist". `remedy`: a
    clause in the imperative.
    """

    id: str
    problem: str
    remedy: str


class Effect(Enum):
    """What KubeVirt does with a migration in spite of a blocker.

    REFUSED: virt-api takes none. HELD: virt-controller lets it wait as long as the cause lasts. IGNORED: the VM
    migrates, but not as asked. UNWANTED: nothing hinders it, but somebody asked to leave the VM where it is.
    """

    REFUSED = "refused"
    HELD = "held"
    IGNORED = "ignored"
    UNWANTED = "unwanted"


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason. `problem` and `advice` are clauses without a full stop, `object` is what they are about.

    id: stable, of lower-case words with hyphens. passing: it goes away by itself. words: KubeVirt's own on the problem.
    """

    id: str
    effect: Effect
    object: str
    problem: str
    advice: str
    passing: bool = False
    words: str = ""

    @property
    def forbids(self) -> bool:
        """Whether no migration comes of it."""
        return self.effect in (Effect.REFUSED, Effect.HELD)

    @property
    def told(self) -> str:
        """The problem with KubeVirt's own words on it, a clause."""
        return f"{self.problem} ({self.words})" if self.words else self.problem

    @property
    def clause(self) -> str:
        return f"{self.told}; {self.advice}"

    @property
    def sentence(self) -> str:
        return _sentence(self.told)

    @property
    def remedy(self) -> str:
        return _sentence(self.advice)

    def to_json(self) -> JsonObject:
        return {
            "id": self.id,
            "effect": self.effect.value,
            "object": self.object,
            "message": self.sentence,
            "remedy": self.remedy,
            "passing": self.passing,
        }


@dataclass(frozen=True, slots=True)
class Candidate:
    """A VMI that is to be migrated, and what is known around it.

    configuration: None if it is not known. in_flight: the VMI's unfinished migration. active_pods: its launcher pods
    that have not ended. source_pod: the one it runs in. target_pod: what KubeVirt would create, or why it can create
    nothing. claims: the namespace's PersistentVolumeClaims by name. limit_ranges, quotas: the namespace's.
    node_selector: labels that were added to the migration.
    """

    vmi: Object
    configuration: Configuration | None = None
    in_flight: Migration | None = None
    active_pods: Sequence[Object] = ()
    source_pod: Object | None = None
    target_pod: Object | NoTargetPod | None = None
    claims: Mapping[str, Object] | None = None
    limit_ranges: Sequence[Object] = ()
    quotas: Sequence[Object] = ()
    node_selector: Mapping[str, str] | None = None

    @property
    def status(self) -> Object:
        return self.vmi.get("status") or {}

    @property
    def title(self) -> str:
        metadata = self.vmi["metadata"]
        return f"VirtualMachineInstance {metadata.get('namespace') or 'default'}/{metadata['name']}"

    @property
    def running(self) -> bool:
        return self.status.get("phase") == "Running"

    def in_namespace(self, kind: str, name: str) -> str:
        """The title of an object beside the VMI."""
        return f"{kind} {self.vmi['metadata'].get('namespace') or 'default'}/{name}"


BlockerRule = Callable[[Candidate], Iterator[Blocker]]


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."
