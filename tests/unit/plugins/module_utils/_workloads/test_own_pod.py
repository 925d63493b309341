# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules written as raw affinity that keep a VM from migrating are found, and no others."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.own_pod import blocked_migrations

from unit.plugins.module_utils._workloads.wording import HOST, SELECTOR, ZONE, Json, template

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def told(**term: object) -> list[str]:
    whole: Json = {"topologyKey": ZONE, "labelSelector": SELECTOR, **term}
    affinity = {"podAntiAffinity": {REQUIRED: [whole]}}
    return list(blocked_migrations(template(affinity=affinity), "shop"))


def test_a_rule_that_counts_the_own_pod_blocks() -> None:
    assert told() == [
        f"the required anti-affinity by {ZONE} counts a VM's own pod too, so no VM can be live-migrated within its own "
        f"{ZONE}. Add mismatchLabelKeys: [kubevirt.io/created-by] to the term."
    ]


@pytest.mark.parametrize("term", [{"namespaces": ["shop"]}, {"namespaceSelector": {}}, {"labelSelector": {}}])
def test_so_do_wider_ones(term: Json) -> None:
    assert len(told(**term)) == 1


@pytest.mark.parametrize(
    "term",
    [
        {"topologyKey": HOST},
        {"mismatchLabelKeys": ["kubevirt.io/created-by"]},
        {"mismatchLabelKeys": ["app"]},
        {"namespaces": ["bank"]},
        {"namespaces": ["bank"], "namespaceSelector": None},
        {"labelSelector": {"matchLabels": {"app": "web"}}},
        {"labelSelector": None},
    ],
)
def test_others_do_not(term: Json) -> None:
    assert told(**term) == []


def test_no_rules_block_nothing() -> None:
    assert list(blocked_migrations(template(), "shop")) == []
