# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs whose migrations show each rule for a target pod, and what happens to them between two migrations.

The node labels `zone` and so on are those of hosts.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from integration.clusters import KUBEVIRT
from integration.migration.hosts import ZONE
from testbed.api import Object
from testbed.scenarios.generator.storage import disk_claim

HOST = "kubernetes.io/hostname"
CREATED_BY, ID = "kubevirt.io/created-by", "vmi.kubevirt.io/id"
VM, VMI, REPLICA_SET = "VirtualMachine", "VirtualMachineInstance", "VirtualMachineInstanceReplicaSet"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Guest:
    """`spec` and `domain`: what differs from an ordinary VMI. `first`, `second`: what its migrations add.

    `change`: a merge patch of the running VM's template spec before the second migration. `status` and `relabel`: of
    the VMI's status and labels. `owner`: a kind.
    """

    name: str
    spec: Object = field(default_factory=dict)
    domain: Object = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    second: dict[str, str] = field(default_factory=dict)
    change: Object = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    status: Object = field(default_factory=dict)
    relabel: Object = field(default_factory=dict)
    owner: str = VM
    replicas: int = 1

    @property
    def twice(self) -> bool:
        """Whether a second migration shows something that the first does not."""
        changed = self.second or self.change or self.status or self.relabel
        return bool(changed) or self.domain.get("cpu", {}).get("model") == "host-model"


def cpu(**fields: Any) -> Object:
    return {"cpu": {"cores": 2, **fields}}


def features(**policies: str) -> list[Object]:
    return [{"name": name.replace("_", "."), "policy": policy} for name, policy in policies.items()]


def nodes_with(*terms: Object) -> Object:
    """Required node affinity; a term maps keys to values."""
    written = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in term.items()]}
        for term in terms
    ]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": written}}}


def term(key: str, **fields: Any) -> Object:
    """A pod affinity term about pods with the label app=NAME of the guest that it is of."""
    return {"topologyKey": key, **fields}


def group(name: str) -> Object:
    return {"labelSelector": {"matchLabels": {"app": name}}}


def spread(name: str, key: str, when: str = "DoNotSchedule", **fields: Any) -> Object:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, **group(name), **fields}
    return {"topologySpreadConstraints": [constraint]}


def toleration(key: str, **fields: Any) -> Object:
    return {"key": key, "operator": "Exists", **fields}


PLACES = (
    Guest("plain"),
    Guest("pinned", first={HOST: "sky-a2"}, second={HOST: "sky-b1"}, spec={"nodeSelector": {"vendor": "Intel"}}),
    Guest("there-and-back", first={ZONE: "b"}, second={ZONE: "c"}, domain=cpu(model="Haswell")),
    Guest("collision", spec={"nodeSelector": {ZONE: "a"}}, first={ZONE: "b"}, second={ZONE: "c", "vendor": "Intel"}),
    Guest("added-vendor", first={"cpu-vendor.node.kubevirt.io/Intel": "true"}),
    Guest("added-schedulable", first={"kubevirt.io/schedulable": "false", "kubernetes.io/arch": "arm64"}),
    Guest("selector-moved", spec={"nodeSelector": {ZONE: "a"}}, change={"nodeSelector": {ZONE: "b"}}),
    Guest("selector-gone", spec={"nodeSelector": {ZONE: "a"}}, change={"nodeSelector": None}),
    Guest("selector-new", first={ZONE: "b"}, change={"nodeSelector": {ZONE: "c"}}, second={"vendor": "Intel"}),
    Guest("terms", spec={"affinity": nodes_with({ZONE: "a"}, {"vendor": "Intel"})}),
    Guest("terms-moved", spec={"affinity": nodes_with({ZONE: "a"})}, change={"affinity": nodes_with({ZONE: "b"})}),
    Guest("terms-gone", spec={"affinity": nodes_with({"vendor": "Intel"})}, change={"affinity": None}),
    Guest(
        "preferred-nodes",
        spec={
            "affinity": {
                "nodeAffinity": {
                    PREFERRED: [
                        {
                            "weight": 7,
                            "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["c"]}]},
                        }
                    ]
                }
            }
        },
    ),
    Guest("apart", spec={"affinity": {"podAntiAffinity": {REQUIRED: [term(HOST, **group("plain"))]}}}),
    Guest(
        "apart-by-zone",
        spec={
            "affinity": {
                "podAntiAffinity": {REQUIRED: [term(ZONE, **group("apart-by-zone"), mismatchLabelKeys=[CREATED_BY])]}
            }
        },
    ),
    Guest(
        "apart-if-possible",
        spec={
            "affinity": {
                "podAntiAffinity": {
                    PREFERRED: [
                        {
                            "weight": 5,
                            "podAffinityTerm": term(
                                HOST, **group("apart"), matchLabelKeys=[ID, "absent"], mismatchLabelKeys=[CREATED_BY]
                            ),
                        }
                    ]
                }
            }
        },
    ),
    Guest(
        "label-of-the-node",
        spec={
            "affinity": {
                "podAffinity": {
                    PREFERRED: [
                        {
                            "weight": 5,
                            "podAffinityTerm": term(
                                ZONE,
                                labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                                mismatchLabelKeys=["kubevirt.io/nodeName"],
                            ),
                        }
                    ]
                }
            }
        },
    ),
    Guest(
        "together",
        spec={"affinity": {"podAffinity": {REQUIRED: [term(ZONE, **group("together"), namespaceSelector={})]}}},
    ),
    Guest(
        "together-later",
        change={"affinity": {"podAffinity": {REQUIRED: [term(ZONE, **group("plain"))]}}},
    ),
    Guest("spread", spec=spread("spread", HOST)),
    Guest("spread-by-revision", spec=spread("spread-by-revision", ZONE, matchLabelKeys=[ID, CREATED_BY])),
    Guest("spread-softly", spec=spread("spread-softly", ZONE, "ScheduleAnyway", nodeTaintsPolicy="Honor")),
    Guest("spread-over-three", spec=spread("plain", ZONE, minDomains=3, nodeAffinityPolicy="Ignore")),
    Guest(
        "tolerant",
        spec={"tolerations": [toleration("dedicated", effect="NoSchedule")]},
        change={"tolerations": [toleration("other"), toleration("dedicated", effect="NoSchedule")]},
    ),
    Guest("less-tolerant", spec={"tolerations": [toleration("dedicated")]}, change={"tolerations": None}),
    Guest(
        "patient",
        spec={"tolerations": [toleration("node.kubernetes.io/not-ready", effect="NoExecute", tolerationSeconds=5)]},
    ),
    Guest("important", spec={"priorityClassName": "system-cluster-critical"}),
    Guest("named-scheduler", spec={"schedulerName": "default-scheduler"}),
    Guest("relabelled", labels={"tier": "front", "group": "a"}, relabel={"tier": None, "group": "b", "new": "yes"}),
    Guest(
        "labelled", labels={"tier": "front", "kubevirt.io": "mine"}, annotations={"sidecar.istio.io/inject": "false"}
    ),
)

PROCESSORS = (
    Guest("host-model", domain=cpu(model="host-model")),
    Guest("host-model-pinned", domain=cpu(model="host-model"), first={"vendor": "Intel"}, second={ZONE: "a"}),
    Guest("host-model-on-amd", domain=cpu(model="host-model"), spec={"nodeSelector": {"vendor": "AMD"}}),
    Guest("host-model-on-ice", domain=cpu(model="host-model"), spec={"nodeSelector": {ZONE: "c", "vendor": "Intel"}}),
    Guest("host-model-requiring", domain=cpu(model="host-model", features=features(aes="require", avx2=""))),
    Guest("host-model-forbidding", domain=cpu(model="host-model", features=features(svm="forbid", aes="optional"))),
    Guest(
        "host-model-with-terms",
        domain=cpu(model="host-model"),
        spec={"affinity": nodes_with({ZONE: "a"}, {ZONE: "b"})},
    ),
    Guest("passthrough", domain=cpu(model="host-passthrough", features=features(avx="require"))),
    Guest(
        "named-model",
        domain=cpu(
            model="Haswell",
            features=features(aes="require", avx="", avx2="force", ssbd="optional", svm="disable", clwb="forbid"),
        ),
    ),
    Guest("renamed-machine", status={"machine": {"type": "pc-q35-rhel9.6.0"}}),
    Guest("old-machine", domain={"machine": {"type": "pc-q35-rhel9.6.0"}}),
    Guest("invariant-clock", domain=cpu(features=features(invtsc="require"))),
    Guest("dedicated", domain=cpu(dedicatedCpuPlacement=True)),
    Guest(
        "realtime",
        domain=cpu(dedicatedCpuPlacement=True, realtime={}, numa={"guestMappingPassthrough": {}})
        | {"memory": {"guest": "256Mi", "hugepages": {"pageSize": "2Mi"}}},
    ),
    Guest("isolated-emulator", domain=cpu(dedicatedCpuPlacement=True, isolateEmulatorThread=True)),
    Guest(
        "windows",
        domain=cpu()
        | {
            "features": {
                "hyperv": {
                    "vpindex": {},
                    "synic": {},
                    "synictimer": {"direct": {}},
                    "reenlightenment": {},
                    "tlbflush": {},
                    "ipi": {"enabled": False},
                    "frequencies": {"enabled": True},
                }
            }
        },
    ),
    Guest("nested-windows", domain=cpu() | {"features": {"hyperv": {"evmcs": {}, "vapic": {}}}}),
)

SIZES = (
    Guest("requests", domain={"resources": {"requests": {"cpu": "300m", "memory": "384Mi"}}}),
    Guest("limits", domain={"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"memory": "512Mi"}}}),
    Guest("huge-pages", domain={"memory": {"guest": "512Mi", "hugepages": {"pageSize": "2Mi"}}}),
    Guest("many-sockets", domain={"cpu": {"cores": 2, "sockets": 2, "threads": 2, "maxSockets": 4}}),
    Guest("memory-to-grow", domain={"memory": {"guest": "1Gi", "maxGuest": "2Gi"}}),
    Guest("plugged-cpus", domain={"cpu": {"sockets": 2}}, change={"domain": {"cpu": {"sockets": 8}}}),
    Guest(
        "plugged-dedicated-cpus",
        domain={"cpu": {"cores": 2, "sockets": 1, "dedicatedCpuPlacement": True}},
        change={"domain": {"cpu": {"sockets": 2}}},
    ),
    Guest("plugged-memory", domain={"memory": {"guest": "1Gi"}}, change={"domain": {"memory": {"guest": "2Gi"}}}),
    Guest(
        "plugged-memory-beside-a-request",
        domain={"memory": {"guest": "1Gi"}, "resources": {"requests": {"memory": "1Gi"}}},
        change={"domain": {"memory": {"guest": "3Gi"}}},
    ),
    Guest("headless", domain={"devices": {"autoattachGraphicsDevice": False, "autoattachSerialConsole": False}}),
    Guest(
        "io-threads", domain={"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 4}}
    ),
    Guest("tpm", domain={"devices": {"tpm": {"persistent": False}}}),
    Guest("efi", domain={"firmware": {"bootloader": {"efi": {"secureBoot": False}}}}),
    Guest("confined", status={"selinuxContext": "system_u:object_r:container_file_t:s0:c1,c2"}),
    Guest("watched", spec={"readinessProbe": {"tcpSocket": {"port": 22}}, "terminationGracePeriodSeconds": 90}),
)


def networks(**devices: Object) -> Object:
    """`spec` and `domain` of a guest with these interfaces, each of the network of its name."""
    return {
        "spec": {"networks": [{"name": name, "multus": {"networkName": name}} for name in devices]},
        "domain": {"devices": {"interfaces": [{"name": name, **device} for name, device in devices.items()]}},
    }


# Resources that networks ask for, by the network's name.
NETWORKS = {"blue": "", "red": "vendor.com/vf", "green": "vendor.com/vf"}
NETWORKED = (
    Guest("no-device", **networks(blue={"bridge": {}})),
    Guest("passed-through", **networks(red={"sriov": {}}), second={"kubernetes.io/os": "linux"}),
    Guest("two-devices", **networks(red={"bridge": {}}, green={"bridge": {}}, blue={"bridge": {}})),
)


def disks(**volumes: Object) -> Object:
    """`spec` and `domain` of a guest with these volumes."""
    return {
        "spec": {"volumes": [{"name": name, **volume} for name, volume in volumes.items()]},
        "domain": {"devices": {"disks": [{"name": name, "disk": {"bus": "virtio"}} for name in volumes]}},
    }


def claim(name: str) -> Object:
    return {"persistentVolumeClaim": {"claimName": name}}


DISKS = (
    Guest("shared-disk", **disks(system=claim("shared-disk"))),
    Guest("two-disks", **disks(system=claim("two-disks"), data=claim("data"))),
    Guest("from-registry", **disks(system={"containerDisk": {"image": "registry.example/system:1"}})),
    Guest(
        "from-registry-twice",
        **disks(
            system={"containerDisk": {"image": "registry.example/system@sha256:" + "0" * 64}},
            tools={"containerDisk": {"image": "registry.example:5000/tools"}},
        ),
    ),
    Guest(
        "token",
        spec={
            "volumes": [
                {"name": "token", "containerPath": {"path": "/var/run/secrets/kubernetes.io/serviceaccount"}},
                {"name": "account", "serviceAccount": {"serviceAccountName": "default"}},
            ]
        },
        domain={
            "devices": {
                "filesystems": [{"name": "token", "virtiofs": {}}],
                "disks": [{"name": "account", "disk": {}}],
            }
        },
    ),
    Guest("scratch", **disks(scratch={"emptyDisk": {"capacity": "2Gi"}}, seed={"cloudInitNoCloud": {"userData": "x"}})),
)

# Started while images are volumes of pods, by a feature gate.
IMAGES = (
    Guest("image", **disks(system={"containerDisk": {"image": "registry.example/system:1"}})),
    Guest(
        "images",
        **disks(
            system={"containerDisk": {"image": "registry.example/system@sha256:" + "0" * 64}},
            tools={"containerDisk": {"image": "registry.example:5000/tools"}},
            scratch={"emptyDisk": {"capacity": "2Gi"}},
        ),
    ),
    Guest("no-image"),
)

OWNERS = (
    Guest("alone", owner=VMI),
    Guest("alone-host-model", owner=VMI, domain=cpu(model="host-model"), first={"vendor": "Intel"}),
    Guest("replica", owner=REPLICA_SET, spec=spread("replica", HOST)),
)

GUESTS = (*PLACES, *PROCESSORS, *SIZES, *NETWORKED, *DISKS, *OWNERS)


def objects(guest: Guest, namespace: str) -> list[Object]:
    """What makes the guest run, its disks first."""
    metadata = {"labels": {"app": guest.name, **guest.labels}, "annotations": guest.annotations}
    ordinary: Object = {
        "terminationGracePeriodSeconds": 1,
        "domain": {
            "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
            "memory": {"guest": "256Mi"},
        },
        "networks": [{"name": "default", "pod": {}}],
    }
    made = merged(merged(ordinary, guest.spec), {"domain": guest.domain})
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in made.get("volumes", ()) if claimed(volume)]
    template = {"metadata": metadata, "spec": made}
    owner: Object = {
        "apiVersion": KUBEVIRT,
        "kind": guest.owner,
        "metadata": {"name": guest.name, "namespace": namespace},
    }
    if guest.owner == VMI:
        owner = {**owner, "metadata": {**owner["metadata"], **metadata}, "spec": made}
    elif guest.owner == VM:
        owner["spec"] = {"runStrategy": "Always", "template": template}
    else:
        owner["spec"] = {
            "replicas": guest.replicas,
            "selector": {"matchLabels": {"app": guest.name}},
            "template": template,
        }
    return [*(item for name in claims for item in disk_claim(namespace, name, shared=True)), owner]


def claimed(volume: Object) -> bool:
    return "persistentVolumeClaim" in volume


def merged(base: Object, patch: Object) -> Object:
    """As a JSON merge patch; lists are replaced."""
    result = dict(base)
    for key, value in patch.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(value, dict) and isinstance(below, dict) else value
    return result
