# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of rules that do not do what they say, of VMs that no migration takes, and of budgets that never yield."""

from __future__ import annotations

from integration.lint.case import Case, Place, Proof
from integration.lint.objects import HOST, ZONE, apart, budget, deployment, near, spread, term, vm, vms
from testbed.scenarios.generator.storage import disk_claim
from testbed.scenarios.generator.topology import GPU_DEVICE

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD = Place({BETA_ZONE: "old", ZONE: "old"})
WRONG_HOST = "topology.kubernetes.io/hostname"
UNDER_RACK = Place({"rack": "1"})

CASES = (
    # VMs that no migration takes.
    Case(
        "no-strategy",
        "no-eviction-strategy",
        Proof.EVICTION_KILLS,
        (vms(replicas=1, evictionStrategy=None),),
        patched=True,
    ),
    Case(
        "bridged",
        "bridge-binding",
        Proof.EVICTION_REFUSED,
        (vms(replicas=1, binding="bridge"),),
        words="not live-migratable",
        patched=True,
    ),
    Case(
        "bridged-by-default",
        "bridge-binding",
        Proof.EVICTION_KILLS,
        (vms(replicas=1, binding="", evictionStrategy="LiveMigrateIfPossible"),),
        patched=True,
    ),
    Case(
        "disk-of-one-node",
        "read-write-once-disk",
        Proof.EVICTION_REFUSED,
        (vm(claims=["disk"]), *disk_claim("lint-disk-of-one-node", "disk", shared=False)),
        words="not live-migratable",
    ),
    Case(
        "device-of-the-host",
        "not-live-migratable",
        Proof.EVICTION_REFUSED,
        (vm(devices={"gpus": [{"name": "gpu", "deviceName": GPU_DEVICE}]}),),
        places=(Place(devices={GPU_DEVICE: 1}),),
        words="not live-migratable",
    ),
    # Rules that do not do what they say.
    Case(
        "apart-by-no-label",
        "topology-key-unknown",
        Proof.SHARED_NODE,
        (vms(replicas=3, affinity=apart(term(WRONG_HOST, "vms"))),),
        patched=True,
        leaves=("anti-affinity-fills-domains",),
    ),
    Case(
        "spread-by-no-label",
        "topology-key-unknown",
        Proof.POD_PENDING,
        (vm(topologySpreadConstraints=spread("no-such-rack", "vm")),),
        words="(missing required label)",
    ),
    Case(
        "near-by-no-label",
        "topology-key-unknown",
        Proof.POD_PENDING,
        (vm(affinity=near(term("no-such-rack", "vm"))),),
        words="didn't match pod affinity rules",
    ),
    Case(
        "racks-of-others",
        "topology-key-unknown",
        Proof.SHARED_NODE,
        # The nodes of the next case have it.
        (vms(replicas=3, affinity=apart(term("rack", "vms"))),),
    ),
    Case(
        "racks-of-some",
        "topology-key-partial",
        Proof.SHARED_NODE,
        (vms(replicas=4, affinity=apart(term("rack", "vms"))),),
        places=(UNDER_RACK, Place(), Place()),
    ),
    Case(
        "no-such-disk",
        "node-selector-matches-nothing",
        Proof.POD_PENDING,
        (vm(nodeSelector={"disk": "sdd"}),),
        words="didn't match Pod's node affinity/selector",
    ),
    Case(
        "apart-from-nobody",
        "pod-selector-matches-nothing",
        Proof.SHARED_NODE,
        (vms(replicas=3, affinity=apart(term(HOST, "vmss"))),),
    ),
    Case(
        "near-to-nobody",
        "pod-selector-matches-nothing",
        Proof.POD_PENDING,
        (vm(affinity=near(term(HOST, "cash"))),),
        words="didn't match pod affinity rules",
    ),
    Case(
        "label-of-old",
        "deprecated-labels",
        Proof.NODE_NEVER_REACHED,
        (vm(nodeSelector={BETA_ZONE: "old"}),),
        places=(OLD, OLD, Place({ZONE: "old"})),
        words="didn't match Pod's node affinity/selector",
        patched=True,
    ),
    Case(
        "apart-by-label-of-old",
        "deprecated-labels",
        Proof.SHARED_NODE,
        (vms(replicas=3, affinity=apart(term(BETA_ZONE, "vms"))),),
        places=(Place({ZONE: "a"}), Place({ZONE: "b"})),
        patched=True,
        leaves=("single-eligible-node",),
    ),
    Case(
        "nobodys-scheduler",
        "unknown-scheduler",
        Proof.POD_IGNORED,
        (vms(replicas=1, schedulerName="nobody"),),
        patched=True,
    ),
    # Disruption budgets.
    Case(
        "all-needed",
        "pdb-never-allows",
        Proof.BUDGET_REFUSES,
        (budget("pods", minAvailable=2), deployment()),
        patched=True,
    ),
    Case(
        "none-missing",
        "pdb-never-allows",
        Proof.BUDGET_REFUSES,
        (budget("pods", maxUnavailable=0), deployment()),
        patched=True,
    ),
    Case(
        "all-vms-needed",
        "pdb-never-allows",
        Proof.BUDGET_REFUSES,
        (budget("vms", minAvailable=2), vms(evictionStrategy="None")),
        patched=True,
    ),
    Case(
        "vms-by-missing",
        "pdb-blind-to-vms",
        Proof.BUDGET_REFUSES,
        (budget("vms", maxUnavailable=1), vms(evictionStrategy="None")),
        patched=True,
    ),
    Case(
        "vms-by-share",
        "pdb-blind-to-vms",
        Proof.BUDGET_REFUSES,
        (budget("vms", minAvailable="50%"), vms(evictionStrategy="None")),
        patched=True,
    ),
    Case(
        "two-budgets",
        "pdbs-overlap",
        Proof.API_REFUSES,
        (budget("pods", minAvailable=1), budget("pods", "second", maxUnavailable=1), deployment()),
        words="more than one PodDisruptionBudget",
    ),
    Case(
        "budget-of-nobody",
        "pdb-matches-nothing",
        Proof.EVICTION_ALLOWED,
        (budget("podz", minAvailable=1), deployment(replicas=1)),
    ),
)
