# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has really become of VMs, told in the terms of a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS

from integration.clusters import evict, launchers, vmis
from integration.fate.population import Machine, together, vmis_of
from testbed.api import Api, ApiError, Object

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Before:
    """A VMI and its node, before anything happened to it."""

    uid: str
    node: str


def lists(api: Api) -> dict[str, list[Object]]:
    """The cluster in plain form."""
    return {kind.name: api.items(kind.path) for kind in KINDS}


def projected(whole: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """What a snapshot keeps of it."""
    return {kind.name: [kind.project(item) for item in whole[kind.name]] for kind in KINDS}


def remember(found: Sequence[Object], machines: Sequence[Machine]) -> dict[str, Before]:
    told = {}
    for machine in machines:
        (vmi,) = vmis_of(found, machine)
        told[machine.name] = Before(vmi["metadata"]["uid"], vmi["status"]["nodeName"])
    return told


def all_ready(api: Api, namespace: str, machines: Sequence[Machine]) -> bool:
    """Whether each runs, and virt-handler has said whether it can be migrated."""
    found = vmis(api, namespace)
    return all(any(_is_told(vmi) for vmi in vmis_of(found, machine)) for machine in machines)


def _is_told(vmi: Object) -> bool:
    kinds = {entry["type"]: entry["status"] for entry in vmi.get("status", {}).get("conditions", ())}
    return kinds.get("Ready") == "True" and "LiveMigratable" in kinds


def outcomes(api: Api, namespace: str, before: dict[str, Before], machines: Sequence[Machine]) -> dict[str, str]:
    """By name: `migrate`, `restart`, `stay_down` or, where all is as before, `block`."""
    found = vmis(api, namespace)
    return {machine.name: _outcome(vmis_of(found, machine), before[machine.name]) for machine in machines}


def _outcome(found: Sequence[Object], before: Before) -> str:
    for vmi in filter(_is_alive, found):
        if vmi["metadata"]["uid"] != before.uid:
            return "restart"
        return "block" if vmi["status"]["nodeName"] == before.node else "migrate"
    # What is on its way is neither up nor down.
    return "starting" if any(vmi["status"].get("phase") not in ENDED for vmi in found) else "stay_down"


def _is_alive(vmi: Object) -> bool:
    return vmi["status"].get("phase") == "Running" and "deletionTimestamp" not in vmi["metadata"]


def nodes_of(api: Api, namespace: str, machine: Machine) -> set[str]:
    found = vmis_of(vmis(api, namespace), machine)
    return {vmi["status"]["nodeName"] for vmi in found if _is_alive(vmi)}


def evict_all(api: Api, namespace: str, machines: Sequence[Machine]) -> dict[str, str]:
    """The server's refusals by name, empty where the eviction was allowed."""
    found = vmis(api, namespace)
    refusals = together(lambda machine: _evict(api, vmis_of(found, machine)[0]), machines)
    return {machine.name: refusal for machine, refusal in zip(machines, refusals, strict=True)}


def _evict(api: Api, vmi: Object) -> str:
    try:
        evict(api, launchers(api, vmi)[0])
    except ApiError as error:
        if error.status != HTTPStatus.TOO_MANY_REQUESTS:
            raise
        return error.message
    return ""
