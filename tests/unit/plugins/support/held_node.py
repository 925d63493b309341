# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in the hands of its owner, of somebody else, or of nobody, on the API server of object_api.py."""

from __future__ import annotations

from typing import Any, Protocol

from unit.plugins.support.modules import Result
from unit.plugins.support.object_api import NAMESPACES, ObjectApi, managed

MARK = "virtops.kubevirt/maintenance"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases/node-n1"
LONG_AGO, FAR_OFF = "2020-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"


class Maintain(Protocol):
    """Run the module on node n1 as owner `run-a`; whatever is given replaces an argument."""

    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


def free_node() -> ObjectApi:
    """A node that nobody has taken, and the namespace of medik8s."""
    fake = ObjectApi()
    fake.add_node("n1")
    fake.objects[f"{NAMESPACES}/medik8s-leases"] = {"metadata": {"name": "medik8s-leases"}}
    return fake


def cordon_by_hand(api: ObjectApi, manager: str = "kubectl-cordon") -> None:
    """As kubectl does it: the field is written, annotations stay."""
    api.node("n1")["spec"] = {"unschedulable": True}
    api.node("n1")["metadata"]["managedFields"] = [managed(manager, "unschedulable")]


def hold_lease(api: ObjectApi, holder: str, renewed: str) -> None:
    api.objects[LEASE] = {
        "metadata": {"name": "node-n1", "namespace": "medik8s-leases", "resourceVersion": "1"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 60,
            "acquireTime": renewed,
            "renewTime": renewed,
            "leaseTransitions": 4,
        },
    }


def traces(api: ObjectApi) -> tuple[bool, bool, bool]:
    """Whether node n1 is cordoned, marked and leased."""
    node = api.node("n1")
    return (
        node["spec"].get("unschedulable") is True,
        MARK in node["metadata"].get("annotations", {}),
        LEASE in api.objects,
    )
