# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters that lack a problem are not said to have it."""

from __future__ import annotations

import copy
from collections import defaultdict

import pytest

from integration.lint.cases import found
from testbed.api import Object
from testbed.scenarios import files
from testbed.scenarios.generator import GeneratorSpec, generate
from unit.plugins.module_utils._lint.world import world

CUSTOMAPP = files.read(files.FOLDER / "customapp.yaml").objects
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REPLICA_SET = "VirtualMachineInstanceReplicaSet"

# What of generated VMs is planted, by profile. Rules about where a VM can go depend on how large the cluster is.
PLANTED = {
    "bridge-binding": "legacy",
    "read-write-once-disk": "store",
    "not-live-migratable": "render",
    "own-pod-blocks-migration": "ledger",
}
SCARCITY = {"anti-affinity-fills-domains", "cpu-on-single-host", "single-eligible-node", "no-room-elsewhere"}


def named(objects: list[Object], name: str) -> Object:
    return next(obj for obj in objects if obj["metadata"]["name"] == name)


def test_customapp_has_the_two_that_it_is_known_for() -> None:
    assert set(found(world(copy.deepcopy(CUSTOMAPP)))) == {
        ("single-eligible-node", REPLICA_SET, "customapp", "mssql2016"),
        ("partner-blocks-migration", REPLICA_SET, "customapp", "blackbox"),
    }


def test_customapp_put_right_has_none() -> None:
    objects = copy.deepcopy(list(CUSTOMAPP))
    for node in objects:
        if node["kind"] == "Node":
            node["metadata"]["labels"]["performance"] = "high"
            node["status"]["allocatable"]["memory"] = node["status"]["capacity"]["memory"] = "64Gi"
    database = named(objects, "mssql2016")["spec"]["template"]["spec"]["affinity"]
    database["podAntiAffinity"][REQUIRED][0]["mismatchLabelKeys"] = ["kubevirt.io/created-by"]
    # A cache on each host instead of one in each zone.
    cache = named(objects, "varnish-cache")["spec"]
    cache["replicas"] = 6
    cache["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]["topologyKey"] = "kubernetes.io/hostname"
    assert set(found(world(objects))) == set()


@pytest.mark.parametrize("seed", range(4))
def test_generated_clusters_have_what_their_profiles_plant(seed: int) -> None:
    lists = world(generate(GeneratorSpec(nodes=30, vmis=150, seed=seed)).objects)
    by_rule: defaultdict[str, set[str]] = defaultdict(set)
    for rule, _kind, _namespace, name in found(lists):
        by_rule[rule].add(name.split("-")[0])
    assert all(by_rule.pop(rule, {profile}) == {profile} for rule, profile in PLANTED.items())
    assert set(by_rule) <= SCARCITY
