# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module vmi_replicaset against a real scheduler and virt-controller: what it foretells comes true, and stays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.modules.vmi_migration import main as vmi_migration
from ansible_collections.virtops.kubevirt.plugins.modules.vmi_replicaset import main

from integration.clusters import KUBEVIRT, VMIS, remove_deserted
from testbed.access import await_permissions, service_account_kubeconfig
from testbed.api import Api, Object, resource_path
from testbed.handle import RunningTestbed
from testbed.nodes import fake_node
from testbed.waiting import wait_for
from unit.plugins.support.modules import ModuleRunner, Result

ZONE = "topology.kubernetes.io/zone"
# Two nodes in each zone, the second of which is fast.
NODES = {f"set-{zone}{number}": zone for zone in "abc" for number in (1, 2)}
HERE: Object = {"key": "example.com/sets"}
FAST: Object = {"key": "example.com/sets", "values": ["fast"]}
PER_ZONE: Object = {"node_labels": [HERE], "keep_apart": [{"per": "zone"}]}


def template(*, guest: str = "512Mi", **spec: Any) -> Object:
    domain = {"devices": {}, "memory": {"guest": guest}}
    return {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"terminationGracePeriodSeconds": 0, "domain": domain, **spec},
    }


@pytest.fixture(scope="module")
def nodes(testbed: RunningTestbed) -> Iterator[None]:
    for name, zone in NODES.items():
        labels = {ZONE: zone, "example.com/sets": "fast" if name.endswith("2") else "slow"}
        testbed.api.create("/api/v1/nodes", fake_node(name, labels=labels))
    wait_for("the nodes to be ready", lambda: all(is_ready(testbed.api, name) for name in NODES))
    yield
    remove_deserted(testbed.api, tuple(NODES))


def is_ready(api: Api, name: str) -> bool:
    """A new node is tainted until its kubelet has reported, and not for VMs until its virt-handler has."""
    node = api.get(resource_path("v1", "nodes", name=name))
    reported = "kubevirt.io/heartbeat" in node["metadata"].get("annotations", {})
    return (
        reported and node["metadata"]["labels"]["kubevirt.io/schedulable"] == "true" and not node["spec"].get("taints")
    )


@pytest.fixture
def apply(run: ModuleRunner, testbed: RunningTestbed, namespace: str, nodes: None) -> Iterator[Any]:
    where: Object = {"kubeconfig": str(testbed.kubeconfig), "namespace": namespace, "name": "db"}
    yield partial(run, main, **where)
    run(main, **where, state="absent")


def set_path(namespace: str) -> str:
    return resource_path(KUBEVIRT, "virtualmachineinstancereplicasets", namespace, "db")


@pytest.mark.gate
def test_the_foretold_nodes_are_the_real_ones(apply: Any) -> None:
    task: Object = {"replicas": 3, "template": template(), "unplaceable": "fail"}
    placement: Object = {"node_labels": [FAST], "keep_apart": [{"per": "zone"}]}
    foretold = apply(**task, placement=placement, check=True)
    real = apply(**task, placement=placement)
    fast = ["set-a2", "set-b2", "set-c2"]
    assert sorted(one["node"] for one in foretold["replicas"]) == fast
    assert sorted(one["node"] for one in real["replicas"]) == fast
    assert not apply(**task, placement=placement)["changed"]


def test_the_foretold_reason_is_the_real_one(apply: Any) -> None:
    task: Object = {"replicas": 4, "template": template(), "placement": PER_ZONE}
    (foretold,) = reasons(apply(**task, check=True))
    look = partial(apply, wait=False, unplaceable="ignore")
    look(**task)
    wait_for("the scheduler's word", lambda: bool(reasons(look())), 30)
    assert reasons(look()) == [foretold]
    assert "didn't match pod anti-affinity rules" in foretold


def reasons(result: Result) -> list[str]:
    """Why replicas fit nowhere."""
    return [one["message"] for one in result["replicas"] if one["message"].startswith("0/")]


@pytest.mark.gate
def test_rules_per_zone_let_vms_migrate_within_it(apply: Any, run: ModuleRunner, testbed: RunningTestbed) -> None:
    vm = apply(replicas=3, template=template(), placement=PER_ZONE)["replicas"][0]
    (other,) = (name for name, zone in NODES.items() if zone == NODES[vm["node"]] and name != vm["node"])
    where = {key: apply.keywords[key] for key in ("kubeconfig", "namespace")}
    moving: Object = {"vmis": [{"name": vm["name"], "target_node": other}], "retries": 0}
    moved = run(vmi_migration, **where, **moving, wait_timeout=60)
    assert moved["migrations"][0]["node"] == other
    # The same rule as people usually write it.
    apply(state="absent")
    strict = {"node_labels": [HERE], "keep_apart": [{"per": "zone", "ignore_own_pod": False}]}
    vm = apply(replicas=3, template=template(), placement=strict)["replicas"][0]
    (other,) = (name for name, zone in NODES.items() if zone == NODES[vm["node"]] and name != vm["node"])
    moving = {"vmis": [{"name": vm["name"], "target_node": other}], "retries": 0}
    homeless = run(vmi_migration, **where, **moving, unschedulable_timeout=1)
    assert homeless["failed"]
    assert "didn't match pod anti-affinity rules" in homeless["msg"]


def test_a_replaced_vmi_is_of_the_new_template(apply: Any, testbed: RunningTestbed, namespace: str) -> None:
    apply(replicas=2, template=template(), placement=PER_ZONE)
    task: Object = {"template": template(guest="1Gi"), "placement": PER_ZONE}
    first, second = (one["name"] for one in apply(**task)["outdated"])
    replaced = first
    while replaced:
        testbed.api.delete(resource_path(KUBEVIRT, VMIS, namespace, replaced))
        wait_for("the VMI to go", partial(is_gone, testbed, namespace, replaced), 30)
        again = apply(**task)
        assert not again["changed"]
        # What virt-controller replaces before it has heard of the change is of the old template.
        replaced = next((one["name"] for one in again["outdated"] if one["name"] != second), "")
    assert [one["name"] for one in again["outdated"]] == [second]


def is_gone(testbed: RunningTestbed, namespace: str, name: str) -> bool:
    return name not in names(testbed, namespace)


def names(testbed: RunningTestbed, namespace: str) -> list[str]:
    return [vmi["metadata"]["name"] for vmi in testbed.api.items(resource_path(KUBEVIRT, VMIS, namespace))]


# Ways to say things that virt-controller says in another way when it writes the object back.
WORDINGS: dict[str, Object] = {
    "amounts": {
        "domain": {
            "devices": {},
            "memory": {"guest": "1048576Ki", "maxGuest": "4096Mi", "hugepages": {"pageSize": "2Mi"}},
            "resources": {"requests": {"cpu": 1, "memory": "1536Mi"}, "limits": {"cpu": "2000m", "memory": "2048Mi"}},
        },
        "volumes": [{"name": "e", "emptyDisk": {"capacity": "1024Mi"}}],
    },
    "nulls": {"hostname": None, "nodeSelector": None, "affinity": {"podAffinity": None}},
    "empty parts": {
        "nodeSelector": {},
        "tolerations": [],
        "affinity": {},
        "domain": {
            "cpu": {"cores": 1, "sockets": 0, "dedicatedCpuPlacement": False},
            "devices": {"rng": {}, "disks": [{"name": "e", "disk": {"bus": "virtio", "readonly": False}}]},
            "features": {},
            "memory": {"guest": "1Gi"},
            "resources": {},
        },
        "readinessProbe": {"tcpSocket": {"port": 80}, "initialDelaySeconds": 0},
        "volumes": [
            {"name": "e", "persistentVolumeClaim": {"claimName": "e", "readOnly": False, "hotpluggable": False}}
        ],
    },
    "devices": {
        "domain": {
            "cpu": {"cores": 2, "model": "Haswell", "features": [{"name": "aes", "policy": "require"}]},
            "clock": {"utc": {}, "timer": {"hpet": {"present": False}, "pit": {"tickPolicy": "delay"}}},
            "devices": {
                "disks": [{"name": "c", "disk": {"bus": "virtio"}, "bootOrder": 1}],
                "interfaces": [{"name": "default", "masquerade": {}, "ports": [{"port": 80}]}],
                "inputs": [{"name": "tablet", "type": "tablet", "bus": "virtio"}],
                "watchdog": {"name": "dog", "i6300esb": {"action": "poweroff"}},
                "tpm": {},
            },
            "features": {"acpi": {}, "smm": {"enabled": True}},
            "firmware": {"bootloader": {"efi": {"secureBoot": False}}},
            "machine": {"type": "q35"},
            "memory": {"guest": "1Gi"},
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "c", "cloudInitNoCloud": {"userData": "#cloud-config"}}],
    },
    "probes and network": {
        "readinessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 5},
        "livenessProbe": {"tcpSocket": {"port": "80"}},
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["192.0.2.1"], "options": [{"name": "ndots", "value": "2"}]},
    },
    "placement": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
                ]
            },
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": ZONE, "labelSelector": {}, "namespaceSelector": {}}
                ]
            },
        },
        "tolerations": [{"operator": "Exists"}],
        "topologySpreadConstraints": [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}],
        "priorityClassName": "system-cluster-critical",
    },
}


@pytest.mark.parametrize("wording", WORDINGS)
def test_what_virt_controller_writes_back_is_no_change(
    apply: Any, testbed: RunningTestbed, namespace: str, wording: str
) -> None:
    task: Object = {"replicas": 0, "paused": False, "template": template(**WORDINGS[wording]), "unplaceable": "ignore"}
    assert apply(**task)["changed"]
    path = set_path(namespace)
    wait_for("virt-controller to write", lambda: testbed.api.get(path)["metadata"]["generation"] > 1, 30)
    assert not apply(**task)["changed"]


def test_a_quota_is_told(apply: Any, testbed: RunningTestbed, namespace: str) -> None:
    hard = {f"count/{VMIS}.kubevirt.io": "1"}
    path = resource_path("v1", "resourcequotas", namespace)
    testbed.api.create(path, {"metadata": {"name": "vms"}, "spec": {"hard": hard}})
    wait_for("the quota to count", lambda: "used" in testbed.api.get(f"{path}/vms").get("status", {}), 30)
    late = apply(replicas=2, template=template(), wait_timeout=20)
    assert "of 2 are ready" in late["msg"]
    assert "exceeded quota: vms" in late["msg"]
    assert "exceeded quota: vms" in apply(replicas=3, unplaceable="fail")["msg"]


def test_a_misspelt_field_is_refused(apply: Any, testbed: RunningTestbed, namespace: str) -> None:
    result = apply(template=template(domian={}))
    assert 'unknown field "spec.template.spec.domian". Correct the task; nothing was written.' in result["msg"]
    assert not testbed.api.items(resource_path(KUBEVIRT, "virtualmachineinstancereplicasets", namespace))


@pytest.mark.gate
def test_a_role_of_one_namespace_suffices(
    run: ModuleRunner, testbed: RunningTestbed, namespace: str, nodes: None
) -> None:
    rules = [
        {
            "apiGroups": ["kubevirt.io"],
            "resources": ["virtualmachineinstancereplicasets"],
            "verbs": ["get", "create", "update", "delete"],
        },
        {"apiGroups": ["kubevirt.io"], "resources": [VMIS], "verbs": ["list", "watch", "create"]},
    ]
    allow(testbed, namespace, rules)
    kubeconfig = service_account_kubeconfig(testbed.home, f"{namespace}/limited")
    task: Object = {"kubeconfig": str(kubeconfig), "namespace": namespace, "name": "db"}
    made = run(main, **task, replicas=1, template=template(), placement=PER_ZONE)
    assert made["replicas"][0]["ready"]
    assert "the permission to list" in str(made["warnings"])
    refused = run(main, **task, replicas=2, unplaceable="fail")
    assert refused["error"]["missing_rules"]
    assert run(main, **task, state="absent")["changed"]


def allow(testbed: RunningTestbed, namespace: str, rules: list[Object]) -> None:
    """Let the service account `limited` do that in its namespace and nothing else."""
    metadata: Object = {"name": "limited", "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    common: Object = {"apiVersion": f"{group}/v1", "metadata": metadata}
    role: Object = {**common, "kind": "Role", "rules": rules}
    testbed.api.apply(role)
    testbed.api.apply(
        {
            **common,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "limited"},
            "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": namespace}],
        }
    )
    await_permissions(testbed.api, f"{namespace}/limited", role)
