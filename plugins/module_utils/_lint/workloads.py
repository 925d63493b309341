# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods and VMs by the object that one would edit to change them: a VM, a replica set, a Deployment.

Rules look at specifications, of which a cluster has far fewer than pods. VMIs that are no longer as their template says
(it was edited after they had started) count as workloads of their own, as a template that is well does not help them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VM,
    VMI,
    VMI_REPLICA_SET,
    Lists,
    Object,
    controller,
    has_ended,
)

KUBEVIRT_API = "kubevirt.io/v1"
_TEMPLATE = "/spec/template"
# What of a VMI is as its template says, as KubeVirt's admission does not change it.
_AS_GIVEN = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulerName")
# Controllers whose pods come back elsewhere. A DaemonSet's pod belongs to its node, a Job's ends.
_RETURNING = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}


@dataclass(frozen=True, slots=True)
class Workload:
    """`prefix`: JSON pointer of `spec` in the subject. `editable`: whether the API lets it be changed there.

    `labels`, `annotations`: what its pods get. `vmis`: those that run by this specification. `pods`: those that
    have not ended, of workloads without VMs. `replicas`: how many there are to be.
    """

    subject: LintedObject
    prefix: str
    editable: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Object
    replicas: int
    vmis: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()

    @property
    def has_vms(self) -> bool:
        return self.subject.kind in (VM, VMI, VMI_REPLICA_SET)

    @property
    def running(self) -> tuple[str, ...]:
        """namespace/name of its VMIs, sorted."""
        names = (f"{vmi['metadata'].get('namespace') or 'default'}/{vmi['metadata']['name']}" for vmi in self.vmis)
        return tuple(sorted(names))


def workloads(lists: Lists) -> list[Workload]:
    """VMs, VMI replica sets, VMIs of their own, then what runs ordinary pods."""
    return [*_of_vms(lists), *_of_pods(lists)]


def _of_vms(lists: Lists) -> Iterator[Workload]:
    owned: defaultdict[tuple[str, str, str], list[Object]] = defaultdict(list)
    for vmi in lists.get("vmis") or ():
        if not has_ended(vmi):
            owned[_owner(vmi)].append(vmi)
    for name, kind in (("vms", VM), ("vmireplicasets", VMI_REPLICA_SET)):
        for item in lists.get(name) or ():
            members = owned.pop((kind, *_place(item)), [])
            yield from _of_template(item, kind, members)
    for members in owned.values():
        yield from _of_vmis(members)


def _of_template(item: Object, kind: str, members: Sequence[Object]) -> Iterator[Workload]:
    spec = item.get("spec") or {}
    template = spec.get("template") or {}
    metadata, wanted = template.get("metadata") or {}, template.get("spec") or {}
    replicas = spec.get("replicas")
    current = [vmi for vmi in members if _follows(vmi["spec"], wanted)]
    yield Workload(
        subject=LintedObject(KUBEVIRT_API, kind, *_place(item)),
        prefix=f"{_TEMPLATE}/spec",
        editable=True,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=wanted,
        replicas=1 if kind == VM or replicas is None else replicas,
        vmis=tuple(current),
    )
    yield from _of_vmis([vmi for vmi in members if not _follows(vmi["spec"], wanted)])


def _follows(actual: Object, template: Object) -> bool:
    """Whether a running VMI is as its template says now, in what matters here."""
    if any((actual.get(name) or None) != (template.get(name) or None) for name in _AS_GIVEN):
        return False
    strategy = template.get("evictionStrategy")
    if strategy and actual.get("evictionStrategy") != strategy:
        return False
    wanted = _bindings(template)
    return not wanted or _bindings(actual) == wanted


def _bindings(spec: Object) -> list[tuple[str, ...]]:
    interfaces = ((spec.get("domain") or {}).get("devices") or {}).get("interfaces") or ()
    known = ("bridge", "masquerade", "binding", "sriov", "passtBinding", "macvtap", "slirp")
    return [(str(entry.get("name")), *(name for name in known if name in entry)) for entry in interfaces]


def _of_vmis(vmis: Iterable[Object]) -> Iterator[Workload]:
    """Each by itself: KubeVirt does not let anyone change the specification of a running VMI."""
    for vmi in vmis:
        metadata = vmi["metadata"]
        yield Workload(
            subject=LintedObject(KUBEVIRT_API, VMI, *_place(vmi)),
            prefix="/spec",
            editable=False,
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            spec=vmi["spec"],
            replicas=1,
            vmis=(vmi,),
        )


def _of_pods(lists: Lists) -> Iterator[Workload]:
    deployments = {
        _place(item): owner["name"]
        for item in lists.get("replicasets") or ()
        if (owner := controller(item)) and owner.get("kind") == "Deployment"
    }
    found: dict[LintedObject, Workload] = {}
    pods: defaultdict[LintedObject, list[Object]] = defaultdict(list)
    for pod in lists.get("pods") or ():
        subject = _subject(pod, deployments)
        if subject is not None and not has_ended(pod):
            pods[subject].append(pod)
    for subject, members in pods.items():
        # While a Deployment rolls, its newest pod is as its template says now.
        found[subject] = _of_pod(subject, max(members, key=_age), len(members))
    for subject, workload in found.items():
        yield replace(workload, pods=tuple(pods[subject]))


def _of_pod(subject: LintedObject, newest: Object, replicas: int) -> Workload:
    metadata = newest["metadata"]
    by_itself = subject.kind == "Pod"
    return Workload(
        subject=subject,
        prefix="/spec" if by_itself else f"{_TEMPLATE}/spec",
        editable=not by_itself,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=newest["spec"],
        replicas=replicas,
    )


def _subject(pod: Object, deployments: Mapping[tuple[str, str], str]) -> LintedObject | None:
    """What to edit to change a pod; None for pods that are not placed anew elsewhere, and those of VMs."""
    namespace, name = _place(pod)
    if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}):
        return None
    kind, _namespace, owner = _owner(pod)
    if not kind:
        return LintedObject("v1", "Pod", namespace, name)
    if kind == "ReplicaSet" and (namespace, owner) in deployments:
        return LintedObject("apps/v1", "Deployment", namespace, deployments[namespace, owner])
    return LintedObject(_RETURNING[kind], kind, namespace, owner) if kind in _RETURNING else None


def _owner(item: Object) -> tuple[str, str, str]:
    """Kind, namespace and name of the controller; an empty kind if there is none."""
    namespace, name = _place(item)
    owner = controller(item)
    return (str(owner.get("kind")), namespace, str(owner.get("name"))) if owner else ("", namespace, name)


def _place(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace") or "default", item["metadata"]["name"]


def _age(pod: Object) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")
