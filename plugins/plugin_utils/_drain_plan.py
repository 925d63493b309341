# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Plans of drains for what a template gives; plugins are thin around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError, MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Snapshot
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import how_to_install
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drains
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.ground import Ground
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._once import once


def drain_plan(
    source: object, nodes: object, policies: object, avoid: object, targets: object, profile: object
) -> DrainPlan:
    """`source`: a snapshot. Raises AnsibleFilterError with one sentence for whatever is wrong."""
    return drain_plans(source, [nodes], policies, avoid, targets, profile)[0]


def drain_plans(
    source: object,
    batches: Sequence[object],
    policies: object,
    avoid: object,
    targets: object,
    profile: object,
    permissions: Mapping[str, object] | None = None,
) -> list[DrainPlan]:
    """A plan for each batch of nodes as if it were the only one; as `drain_plan`.

    The file of a snapshot is read once for all the calls of a task, and what costs in proportion to it is done once.
    `permissions`: by what evictions need (`PodFate.needs`), whether that is allowed; without an entry nothing is said.
    """
    known = {entry.value: entry for entry in Profile}
    if not isinstance(profile, str) or profile not in known:
        raise AnsibleFilterError(f"There is no profile {profile!r}. Give one of {', '.join(known)}.")
    named = [[nodes] if isinstance(nodes, str) else _names("nodes", nodes) for nodes in batches]
    forbidden = _forbidden(permissions or {})
    avoided, pinned = _names("avoid", avoid), _targets(targets)
    try:
        ground, rules = once(_ground, source), compile_rules(policies)
        plans = plan_drains(ground, named, policies=rules, avoid=avoided, targets=pinned, profile=known[profile])
    except MissingLibrary as error:
        raise AnsibleFilterError(how_to_install(error)) from None
    except (ExpectedError, Failure, InvalidRequest) as error:
        # Ansible prints a cause after the message, and here that would be the same sentence again.
        raise AnsibleFilterError(str(error)) from None
    return [_sparing(plan, forbidden) for plan in plans]


def _ground(lists: Lists) -> Ground:
    return Ground(Snapshot(lists))


def _forbidden(permissions: Mapping[str, object]) -> frozenset[str]:
    for need, allowed in permissions.items():
        if not isinstance(allowed, bool):
            raise AnsibleFilterError(f"`{need}` is true or false, got {allowed!r}.")
    return frozenset(need for need, allowed in permissions.items() if not allowed)


def _sparing(plan: DrainPlan, forbidden: frozenset[str]) -> DrainPlan:
    """The plan, infeasible if a pod's eviction needs what is forbidden: node_drain would refuse it."""
    spared = [pod for pod in plan.pods if forbidden.intersection(pod.needs)]
    if not spared:
        return plan
    already = f"{', '.join(plan.nodes)} cannot be drained like this." if plan.feasible else plan.message
    names = ", ".join(sorted(f"{pod.namespace}/{pod.name}" for pod in spared))
    needed = " and ".join(sorted(forbidden.intersection(need for pod in spared for need in pod.needs)))
    message = (
        f"{already} These pods would lose what they keep in emptyDir volumes, or would not be replaced: {names}. "
        f"Let them go by {needed}, or move them yourself."
    )
    return replace(plan, feasible=False, passing=False, message=message)


def in_batches(nodes: object) -> tuple[list[object], bool]:
    """The batches of a list of lists of names, and True; else what is given as the only batch, and False.

    Raises AnsibleFilterError for a mixture.
    """
    if isinstance(nodes, (str, bytes, Mapping)) or not isinstance(nodes, Iterable):
        return [nodes], False
    entries = list(nodes)
    nested = [isinstance(entry, (list, tuple)) for entry in entries]
    if not any(nested):
        return [entries], False
    if not all(nested):
        raise AnsibleFilterError(f"`nodes` is a list of names of nodes, or of such lists, got {entries!r}.")
    return entries, True


def _names(option: str, given: object) -> list[str]:
    names = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise AnsibleFilterError(f"`{option}` is a list of names of nodes, got {given!r}.")
    return names


def _targets(given: object) -> dict[str, str]:
    if isinstance(given, Mapping) and all(isinstance(text, str) for pair in given.items() for text in pair):
        return dict(given)
    raise AnsibleFilterError(
        f"`targets` maps VMIs to nodes, as in {{'shop/database': 'worker-2'}}, got {given!r}. Correct it."
    )
