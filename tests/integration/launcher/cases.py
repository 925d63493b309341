# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs of which the pods are foretold, from the YAML files of this folder.

configuration: {}     # of the KubeVirt object
annotations: {}       # of that, too
namespace: {}         # labels of the namespace
quota: {}             # hard limits of a ResourceQuota in it
defaults: []          # limits of a LimitRange in it
networks: {}          # NetworkAttachmentDefinitions in it by name: the resource that each asks for, may be empty
claims: []            # names of PersistentVolumeClaims in it
cases:
  - intent: what is special about it, in one line
    kind: VirtualMachineInstance
    metadata: {}
    spec: {}          # of the VMI
    domain: {}        # of that, without its devices; if it is not given, a guest of 64 MiB
    devices: {}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from testbed.api import Object

FOLDER = Path(__file__).resolve().parent
KUBEVIRT = "kubevirt.io/v1"
VMI = "VirtualMachineInstance"
# Label of the VMIs, by which they are found in all namespaces.
CASE = "test.virtops/case"
_TINY = {"memory": {"guest": "64Mi"}}


@dataclass(frozen=True)
class Case:
    intent: str
    kind: str = VMI
    metadata: Object = field(default_factory=dict)
    spec: Object = field(default_factory=dict)
    domain: Object = field(default_factory=lambda: dict(_TINY))
    devices: Object = field(default_factory=dict)

    def manifest(self, namespace: str, number: int) -> Object:
        """As a user would write it."""
        labels = {**self.metadata.get("labels", {}), CASE: str(number)}
        metadata = {"name": f"case-{number}", **self.metadata, "namespace": namespace, "labels": labels}
        spec = {**self.spec, "domain": {**self.domain, "devices": self.devices}}
        if self.kind == VMI:
            return {"apiVersion": KUBEVIRT, "kind": VMI, "metadata": metadata, "spec": spec}
        template = {"metadata": {**self.metadata, "labels": labels}, "spec": spec}
        more: Object = {"runStrategy": "Always"}
        if self.kind != "VirtualMachine":
            more = {"replicas": 1, "selector": {"matchLabels": self.metadata["labels"]}}
        return {"apiVersion": KUBEVIRT, "kind": self.kind, "metadata": metadata, "spec": {**more, "template": template}}


@dataclass(frozen=True)
class Surroundings:
    """One file: what the cluster and the namespace of its cases are like."""

    title: str
    configuration: Object
    annotations: Object = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    namespace: Object = field(default_factory=dict)
    quota: Object = field(default_factory=dict)
    defaults: tuple[Object, ...] = ()
    claims: tuple[str, ...] = ()
    networks: dict[str, str] = field(default_factory=dict)


def titles() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read(title: str) -> Surroundings:
    given: dict[str, Any] = yaml.safe_load((FOLDER / f"{title}.yaml").read_text())
    cases = tuple(Case(**case) for case in given.pop("cases"))
    return Surroundings(title=title, cases=cases, **given)
