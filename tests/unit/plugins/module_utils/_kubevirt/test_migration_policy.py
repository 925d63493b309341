# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policy applies to a VMI, and what it changes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_policy import matching, terms

Object = dict[str, Any]

AROUND = {"env": "prod", "team": "shop"}


def policy(name: str, own: Object | None = None, around: Object | None = None, **changes: Any) -> Object:
    selectors: Object = {}
    if own is not None:
        selectors["virtualMachineInstanceSelector"] = own
    if around is not None:
        selectors["namespaceSelector"] = around
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **changes}}


def labelled(labels: Object | None = None) -> Object:
    return {"metadata": {"name": "a", "labels": {"app": "db", "tier": "gold"} if labels is None else labels}}


@pytest.mark.parametrize(
    ("policies", "chosen"),
    [
        ([], None),
        ([policy("a", {"app": "web"})], None),
        ([policy("a", {"app": "db"}, {"env": "test"})], None),
        ([policy("a", {"app": "db"}), policy("b", {"app": "db", "tier": "gold"})], "b"),
        ([policy("a", {"app": "db"}), policy("b", {}, {"env": "prod", "team": "shop"})], "b"),
        ([policy("a", None, {"env": "prod"}), policy("b", {"app": "db"})], "b"),
        ([policy("b", {"app": "db"}), policy("a", {"tier": "gold"})], "a"),
        ([policy("a")], "a"),
        ([policy("b", {}), policy("a", {"app": "web"})], "b"),
        ([{"metadata": {"name": "a"}, "spec": {"selectors": None}}], None),
    ],
)
def test_most_labels_win_then_the_vmis_then_the_name(policies: list[Object], chosen: str | None) -> None:
    found = matching(labelled(), AROUND, policies)
    assert (found and found["metadata"]["name"]) == chosen


def test_a_vmi_without_labels_matches_every_policy_alike() -> None:
    found = matching(labelled({}), {}, [policy("b", {"app": "db"}), policy("a", {"x": "y"}, {"z": "z"})])
    assert found is not None
    assert found["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"bandwidthPerMigration": "64Mi"}, Migrations(bandwidth=64 * 2**20)),
        ({"allowAutoConverge": True}, Migrations(auto_converge=True)),
        ({"completionTimeoutPerGiB": 0}, Migrations(completion_timeout_per_gib=0)),
        ({"allowPostCopy": True}, Migrations(post_copy=True, allow_workload_disruption=True)),
        ({"allowPostCopy": True, "allowWorkloadDisruption": False}, Migrations(post_copy=True)),
        ({"allowWorkloadDisruption": True}, Migrations(allow_workload_disruption=True)),
    ],
)
def test_what_a_policy_changes(changes: Object, expected: Migrations) -> None:
    found = terms(labelled(), AROUND, [policy("p", {"app": "db"}, **changes)], Migrations())
    assert (found.policy, found.migrations) == ("p", expected)


def test_a_policy_that_changes_nothing_is_not_named() -> None:
    found = terms(labelled(), AROUND, [policy("p", {"app": "db"})], Migrations(bandwidth=1))
    assert (found.policy, found.migrations) == ("", Migrations(bandwidth=1))


def test_disruption_that_the_cluster_allows_goes_with_post_copy_that_a_policy_denies() -> None:
    cluster = Migrations(post_copy=True, allow_workload_disruption=True)
    assert terms(labelled(), AROUND, [policy("p", allowPostCopy=False)], cluster).migrations == Migrations()
