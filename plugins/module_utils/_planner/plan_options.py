# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan is asked for. It goes into the plan, so that the same plan can be made again, and repaired.

Of batches it is what people want of them where they do not say themselves which nodes are in which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.drained_pod import DELETE_EMPTYDIR_DATA, FORCE
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import Rule, compile_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile

AUTO = "auto"
_ATTEMPT = "take the options of a plan"
NEEDS = (FORCE, DELETE_EMPTYDIR_DATA)


@dataclass(frozen=True, slots=True)
class BatchRules:
    """size: nodes that are out of service together at most; None for as many as do not cost more migrations.

    free: whether the planner chooses the order; otherwise it is that of the nodes. apart: label keys; of the nodes with
    one value of such a label, one at a time is out of service. together: a label key; the nodes with one value are
    all done before those with the next, empty for none. first, last: names of nodes.
    """

    size: int | None = 1
    free: bool = True
    apart: tuple[str, ...] = ()
    together: str = ""
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @property
    def reorders(self) -> bool:
        """Whether batches may begin with another node than the first one that is left of those that were given."""
        return self.free or bool(self.apart or self.together or self.first or self.last)

    def to_json(self) -> JsonObject:
        return {
            "size": AUTO if self.size is None else self.size,
            "order": "free" if self.free else "given",
            "apart": list(self.apart),
            "together": self.together,
            "first": list(self.first),
            "last": list(self.last),
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> BatchRules:
        """From what `to_json` returned, which `_is_of_batches` has looked at."""
        return cls(
            size=None if given["size"] == AUTO else given["size"],
            free=given["order"] == "free",
            apart=tuple(given["apart"]),
            together=given["together"],
            first=tuple(given["first"]),
            last=tuple(given["last"]),
        )


def _is_of_batches(given: object) -> bool:
    """Whether something is what `BatchRules.to_json` returns."""
    if not isinstance(given, Mapping) or set(given) != set(BatchRules().to_json()):
        return False
    size = given["size"]
    return (
        (size == AUTO or (isinstance(size, int) and not isinstance(size, bool) and size > 0))
        and given["order"] in ("free", "given")
        and isinstance(given["together"], str)
        and all(_is_texts(given[name]) for name in ("apart", "first", "last"))
    )


class Failing(Enum):
    """What may fail while a batch is away without its VMs finding no memory. NONE: nothing is asked for."""

    NONE = "none"
    LARGEST_NODE = "largest_node"
    ZONE = "zone"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """policies: rules as Ansible gives them; `rules`: the same, compiled.

    avoid: nodes that VMs go to only if they fit nowhere else. targets: nodes for VMIs, by namespace/name. allowed: what
    evictions may need, of `NEEDS`. profile: how nodes that fit are ranked. batching: what is wanted of the batches,
    None if they are given. room: how many VMs on nodes that stay in service may be moved, in all, for the sake of those
    that find no node. reserve: what may fail beside each batch. Raises InvalidRequest for policies that are none.
    """

    policies: Sequence[Mapping[str, Any]] = ()
    avoid: tuple[str, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    profile: Profile = Profile.LOW_NODE_UTILIZATION
    batching: BatchRules | None = None
    room: int = 0
    reserve: Failing = Failing.NONE
    rules: tuple[Rule, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", compile_rules(self.policies))

    def to_json(self) -> JsonObject:
        return {
            "policies": [dict(entry) for entry in self.policies],
            "avoid": list(self.avoid),
            "targets": dict(self.targets),
            "allowed": sorted(self.allowed),
            "profile": self.profile.value,
            "batching": self.batching.to_json() if self.batching else None,
            "room": self.room,
            "reserve": self.reserve.value,
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PlanOptions:
        """From what `to_json` returned; what is missing is as by default. Raises InvalidRequest with all problems."""
        problems = [
            *(f"there is no option {name}" for name in sorted(set(given) - _CHECKS.keys())),
            *(f"`{name}` is {wanted}, got {given[name]!r}" for name, (wanted, fits) in _CHECKS.items()
              if name in given and not fits(given[name])),
        ]  # fmt: skip
        if problems:
            raise InvalidRequest(_ATTEMPT, problems, "Correct them, or make the plan again.")
        return cls(
            policies=given.get("policies") or (),
            avoid=tuple(given.get("avoid") or ()),
            targets=dict(given.get("targets") or {}),
            allowed=frozenset(given.get("allowed") or ()),
            profile=Profile(given.get("profile") or Profile.LOW_NODE_UTILIZATION.value),
            batching=BatchRules.of(given["batching"]) if given.get("batching") else None,
            room=given.get("room") or 0,
            reserve=Failing(given.get("reserve") or Failing.NONE.value),
        )


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _is_texts(value: Any) -> bool:
    return _is_list(value) and all(isinstance(entry, str) for entry in value)


def _is_mapping_of_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)


_FAILING = tuple(failing.value for failing in Failing)
_PROFILES = tuple(profile.value for profile in Profile)
_CHECKS: Mapping[str, tuple[str, Any]] = {
    "policies": ("a list of rules", _is_list),
    "avoid": ("a list of names of nodes", _is_texts),
    "targets": ("a mapping of VMIs to nodes", _is_mapping_of_texts),
    "allowed": (f"a list of {', '.join(NEEDS)}", lambda value: _is_texts(value) and set(value) <= set(NEEDS)),
    "profile": (f"one of {', '.join(_PROFILES)}", lambda value: value in _PROFILES),
    "batching": ("what is wanted of batches, or nothing", lambda value: value is None or _is_of_batches(value)),
    "reserve": (f"one of {', '.join(_FAILING)}", lambda value: value in _FAILING),
    "room": ("a number of VMs", lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0),
}
