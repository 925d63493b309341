# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of rights: nobody gets more than there is a reason for, and a run has all that its parts need."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.needs import (
    IDENTIFY,
    INTERRUPT,
    READ,
    START,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.right import Right, manifests, policy_rules
from ansible_collections.virtops.kubevirt.plugins.module_utils._rights.roles import MODULES, ROLES, reasons

READING = {"get", "list", "watch"}
RELEASE = Right("coordination.k8s.io", "leases", "delete", of_leases=True)
DOCUMENTED = Path(__file__).parents[5] / "plugins/modules"
EVERYTHING = {**ROLES, **MODULES}


@pytest.mark.parametrize("who", EVERYTHING)
def test_each_right_has_its_reasons(who: str) -> None:
    for right, why in reasons(EVERYTHING[who]).items():
        assert why, right
        assert all(words and not words.startswith("to ") and not words.endswith(".") for words in why)


@pytest.mark.parametrize("who", EVERYTHING)
def test_nobody_reads_secrets_or_gets_a_star(who: str) -> None:
    for right in reasons(EVERYTHING[who]):
        assert "secrets" not in right.resource
        assert "*" not in (right.group, right.resource, right.verb)


def test_who_only_plans_writes_nothing() -> None:
    assert {right.verb for right in reasons(ROLES["planning"])} <= READING


@pytest.mark.parametrize("role", ROLES)
def test_a_whole_run_has_the_rights_of_each_role(role: str) -> None:
    assert reasons(ROLES[role]).keys() <= reasons(ROLES["rolling_maintenance"]).keys()


@pytest.mark.parametrize("module", MODULES)
def test_a_whole_run_has_the_rights_of_each_module(module: str) -> None:
    assert reasons(MODULES[module]).keys() <= reasons(ROLES["rolling_maintenance"]).keys()


def test_each_module_that_sends_to_the_guide_to_rights_stands_there() -> None:
    """Those of accounts are about rights."""
    modules = {path.stem for path in DOCUMENTED.glob("*.py") if "R(the guide to rights," in path.read_text()}
    assert modules - {"access_account", "access_review"} <= {name.partition(",")[0] for name in MODULES}


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_tell_its_cluster_from_others(role: str) -> None:
    assert IDENTIFY.reasons.keys() <= reasons(ROLES[role]).keys()


@pytest.mark.parametrize("role", ["plan_maintenance", "drain", "uncordon", "rolling_maintenance"])
def test_who_holds_a_lease_may_release_it(role: str) -> None:
    assert RELEASE in reasons(ROLES[role])


def test_who_drains_may_bring_back_all_that_a_drain_takes_away() -> None:
    """A rebooted node would stay cordoned otherwise, and what was stopped for it off."""
    assert reasons(ROLES["uncordon"]).keys() <= reasons(ROLES["drain"]).keys()


@pytest.mark.parametrize("who", [who for who, needs in EVERYTHING.items() if INTERRUPT in needs])
def test_who_may_stop_vms_may_start_them(who: str) -> None:
    assert START in EVERYTHING[who]


def test_all_that_a_snapshot_holds_is_read() -> None:
    assert {(right.group, right.resource) for right in READ.reasons} == {(kind.group, kind.resource) for kind in KINDS}


def test_leases_and_config_maps_are_allowed_in_one_namespace_only() -> None:
    everywhere, there = manifests("any", reasons(ROLES["rolling_maintenance"]), "leases")
    assert (everywhere["kind"], there["kind"], there["metadata"]["namespace"]) == ("ClusterRole", "Role", "leases")
    assert set(chain.from_iterable(rule["resources"] for rule in there["rules"])) == {"leases", "configmaps"}
    resources = set(chain.from_iterable(rule["resources"] for rule in everywhere["rules"]))
    assert not resources & {"leases", "configmaps"}


def test_who_needs_no_lease_gets_no_role_for_it() -> None:
    assert [item["kind"] for item in manifests("any", reasons(ROLES["live_migrate"]))] == ["ClusterRole"]


def test_rules_are_joined_by_their_verbs() -> None:
    rights = [
        Right("", "pods", "list"),
        Right("", "nodes", "list"),
        Right("", "nodes", "get"),
        Right("", "events", "list"),
        Right("", "namespaces", "get", "kube-system"),
        Right("apps", "daemonsets", "list"),
    ]
    assert policy_rules(rights) == [
        {"apiGroups": [""], "resources": ["events", "pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"], "resourceNames": ["kube-system"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list"]},
    ]
