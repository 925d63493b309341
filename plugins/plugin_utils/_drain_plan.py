# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""The plan of a drain for what a template gives; plugins are thin around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain import plan_drain
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.drain_plan import DrainPlan
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.policies import compile_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.scores.registry import Profile


def drain_plan(
    source: object, nodes: object, policies: object, avoid: object, targets: object, profile: object
) -> DrainPlan:
    """`source`: a snapshot. Raises AnsibleFilterError with one sentence for whatever is wrong."""
    known = {entry.value: entry for entry in Profile}
    if not isinstance(profile, str) or profile not in known:
        raise AnsibleFilterError(f"There is no profile {profile!r}. Give one of {', '.join(known)}.")
    named = [nodes] if isinstance(nodes, str) else _names("nodes", nodes)
    try:
        return plan_drain(
            load(source).lists,
            named,
            policies=compile_rules(policies),
            avoid=_names("avoid", avoid),
            targets=_targets(targets),
            profile=known[profile],
        )
    except (ExpectedError, Failure, Mistake) as error:
        # Ansible prints a cause after the message, and here that would be the same sentence again.
        raise AnsibleFilterError(str(error)) from None


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
