# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of VMs that have nowhere to go, or do not get there in time."""

from __future__ import annotations

from integration.lint.case import TAINT, Case, Place, Proof
from integration.lint.objects import (
    HOST,
    ZONE,
    apart,
    deployment,
    near,
    on,
    policy,
    rather_on,
    reached_from,
    spread,
    term,
    vm,
    vms,
)
from testbed.scenarios.generator.storage import disk_claim

A, B = Place({ZONE: "a"}), Place({ZONE: "b"})
SSD = {"disk": "ssd"}
NVME = {"disk": "nvme"}
LAUNCHER = {"kubevirt.io": "virt-launcher"}
OWN_PODS = {"mismatchLabelKeys": ["kubevirt.io/created-by"]}

CASES = (
    Case(
        "one-in-each-zone",
        "own-pod-blocks-migration",
        Proof.MIGRATION_PENDING,
        (vms(affinity=apart(term(ZONE, "vms"))),),
        places=(A, A, B, B),
        patched=True,
    ),
    Case(
        "apart-from-all-vms",
        "own-pod-blocks-migration",
        Proof.MIGRATION_PENDING,
        (vms(affinity=apart({"topologyKey": ZONE, "labelSelector": {"matchLabels": LAUNCHER}})),),
        places=(A, A, B, B),
        patched=True,
    ),
    Case(
        "one-on-each-host",
        "anti-affinity-fills-domains",
        Proof.MIGRATION_PENDING,
        (vms(affinity=apart(term(HOST, "vms"))),),
    ),
    Case(
        "beside-its-partner",
        "partner-blocks-migration",
        Proof.MIGRATION_PENDING,
        (vm(affinity=near(term(HOST, "cache"))), deployment("cache", replicas=1)),
    ),
    Case(
        "one-node-with-ssd",
        "single-eligible-node",
        Proof.MIGRATION_PENDING,
        (vm(nodeSelector=SSD),),
        places=(Place(SSD), Place()),
    ),
    Case(
        "one-node-with-ssd-in-each-zone",
        "single-eligible-node",
        Proof.MIGRATION_PENDING,
        (vms(affinity={**apart(term(ZONE, "vms", **OWN_PODS)), **on("disk", "ssd")}),),
        places=(Place({ZONE: "a", **SSD}), A, Place({ZONE: "b", **SSD}), B),
    ),
    Case(
        "one-node-without-a-taint",
        "single-eligible-node",
        Proof.MIGRATION_PENDING,
        (vm(),),
        places=(Place(),),
    ),
    Case(
        "disk-that-one-node-reaches",
        "single-eligible-node",
        Proof.MIGRATION_PENDING,
        (
            vm(claims=["disk"]),
            *reached_from(
                "disk-that-one-node-reaches-1", disk_claim("lint-disk-that-one-node-reaches", "disk", shared=True)
            ),
        ),
        places=(Place(), Place()),
    ),
    Case(
        "bound-by-name",
        "host-name-in-selector",
        Proof.MIGRATION_PENDING,
        (vm(nodeSelector={HOST: "common-1"}),),
        words="didn't match Pod's node affinity/selector",
        patched=True,
    ),
    Case(
        "bound-by-affinity",
        "host-name-in-selector",
        Proof.MIGRATION_PENDING,
        (vm(affinity=on(HOST, "common-2")),),
        words="didn't match Pod's node affinity/selector",
    ),
    Case(
        "one-host-of-its-kind",
        "cpu-on-single-host",
        Proof.MIGRATION_PENDING,
        (vm(cpu_model="host-model", affinity=rather_on("disk", "ssd")),),
        places=(Place(SSD), Place(model="EPYC-Rome")),
    ),
    Case(
        "model-of-one-host",
        "cpu-on-single-host",
        Proof.MIGRATION_PENDING,
        (vm(cpu_model="Icelake-Server"),),
        places=(Place(model="Icelake-Server"), Place()),
    ),
    Case(
        "large-vms",
        "no-room-elsewhere",
        Proof.MIGRATION_PENDING,
        (vms(replicas=3, memory="1536Mi"),),
        places=(Place(memory="3Gi"), Place(memory="3Gi"), Place(memory="3Gi")),
    ),
    Case(
        "full-nodes",
        "node-overcommitted",
        Proof.NODE_NOT_EMPTIED,
        tuple(vm(f"vm-{number}", memory="1Gi") for number in range(1, 5)),
        places=(Place(memory="4Gi"), Place(memory="4Gi")),
        kind="Node",
        subjects=("full-nodes-1", "full-nodes-2"),
        words="Insufficient memory",
    ),
    Case(
        "two-on-each-node",
        "spread-stops-drain",
        Proof.DRAIN_STOPS,
        (vms(replicas=6, nodeSelector={TAINT: "two-on-each-node"}, topologySpreadConstraints=spread(HOST, "vms")),),
        places=(Place(), Place(), Place()),
        patched=True,
    ),
    Case(
        "too-small-without-ssd",
        "several-rules-together",
        Proof.MIGRATION_PENDING,
        # No other case has nodes with this label, of which a taint alone would keep the VM.
        (vm(nodeSelector=NVME, memory="2Gi"),),
        places=(Place(NVME), Place(memory="1Gi")),
    ),
    Case(
        "slow-and-hasty",
        "migration-times-out",
        Proof.MIGRATION_FAILS,
        (
            policy("slow-and-hasty", "slow", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=10),
            vm("slow", memory="256Mi"),
        ),
        patched=True,
    ),
    Case(
        "slow-and-many",
        "drain-exceeds-window",
        Proof.DRAIN_TAKES_LONG,
        (
            policy("slow-and-many", "many", bandwidthPerMigration="1Mi", completionTimeoutPerGiB=2000),
            vms("many", replicas=3, memory="256Mi", affinity=rather_on("disk", "ssd")),
        ),
        places=(Place(SSD), Place()),
        kind="Node",
        subjects=("slow-and-many-1",),
    ),
)
