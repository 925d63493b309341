# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What node_readiness takes from its task, sees, and gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import waiting
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.objects import evacuees, read_node
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import (
    require_cluster,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.fitness import (
    BeforeMaintenance,
    NodeObstacle,
    boot_id,
    heartbeat,
    node_obstacles,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object, name_problems
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect_with, persistence_of
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Incomplete, Module

_REMEDY = "Remove the cause and run the task again."
_LET_THEM = "Let their migrations end, or let them stay by vmi_migration with state=absent, then run the task again."
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def spec() -> JsonObject:
    return {
        "name": {"type": "str", "required": True},
        "boot_id": {"type": "str"},
        "heartbeat": {"type": "str"},
        "rebooted": {"type": "bool", "default": False},
        "heartbeat_age": {"type": "int", "default": 180},
        "evacuations": {"type": "str", "choices": ["wait", "ignore"], "default": "wait"},
        "cluster_uid": {"type": "str"},
    }


def facts_before(client: Client, name: str) -> JsonObject:
    """What a node has that a reboot changes, to be compared after it. Raises Failure."""
    return _facts(read_node(client, name))


@dataclass(frozen=True, slots=True)
class _Sight:
    """leaving: namespaces and names of the VMIs that are to leave the node, None if that was not looked at."""

    facts: JsonObject
    obstacles: tuple[NodeObstacle, ...]
    leaving: tuple[JsonObject, ...] | None

    def values(self) -> JsonObject:
        leaving = {} if self.leaving is None else {"leaving": list(self.leaving)}
        return {"changed": False, **self.facts, "obstacles": [*map(str, self.obstacles)], **leaving}

    def reasons(self) -> list[str]:
        """Why nothing is to come to it yet, a clause each."""
        titles = [f"{vmi['namespace']}/{vmi['name']}" for vmi in self.leaving or ()]
        stays = [f"KubeVirt still wants these virtual machines to leave it: {', '.join(titles)}"] if titles else []
        return [obstacle.why for obstacle in self.obstacles] or stays


class Readiness:
    """Sees whether a node is fit, as its task wants to know it. Raises InvalidRequest."""

    def __init__(self, module: Module) -> None:
        params = module.params
        if problems := list(_problems(params)):
            raise InvalidRequest("look at the node", problems, "Correct the task.")
        self._module = module
        self._waits = params["wait"] and not module.check_mode
        self._progress = Progress.of(params, f"node {params['name']}")
        # In check mode nothing has rebooted.
        rebooted = params["rebooted"] and not module.check_mode
        self._before = BeforeMaintenance(params["boot_id"] or "", params["heartbeat"] or "", rebooted)
        self._persistence = persistence_of(module, params["wait_timeout"] if self._waits else None)
        self._client: Client | None = None

    def result(self) -> JsonObject:
        """Raises Failure, and Incomplete with what was seen unless the node is fit."""
        params = self._module.params
        seconds = params["wait_timeout"] if self._waits else 0
        try:
            sight = waiting.until(self._look, self._is_enough, seconds, params["wait_sleep"], self._tell)
        except Failure as error:
            clause = self._clause(error)
            if not clause:
                raise
            told = self._failure([clause], _REMEDY, error) if self._waits and error.passing else error
            raise Incomplete(told, {"changed": False, "obstacles": [clause]}) from error
        if self._is_enough(sight):
            return sight.values()
        if sight.obstacles:
            raise Incomplete(self._failure([*map(str, sight.obstacles)], _REMEDY), sight.values())
        raise Incomplete(self._failure(sight.reasons(), _LET_THEM), sight.values())

    def _look(self) -> _Sight:
        """Raises Failure. Whoever is to leave counts only once it is fit."""
        client, name = self._connected(), self._module.params["name"]
        node = read_node(client, name)
        obstacles = node_obstacles(node, datetime.now(timezone.utc), self._module.params["heartbeat_age"], self._before)
        if obstacles:
            return _Sight(_facts(node), obstacles, None)
        metadata = (vmi["metadata"] for vmi in evacuees(client, name))
        leaving = tuple({"namespace": vmi["namespace"], "name": vmi["name"]} for vmi in metadata)
        return _Sight(_facts(node), (), leaving)

    def _connected(self) -> Client:
        """An API server that is away when the task begins is waited for as one that goes away later. Raises Failure."""
        if self._client is None:
            client, uid = connect_with(self._module, self._persistence), self._module.params["cluster_uid"]
            if uid:
                require_cluster(client, uid)
            self._client = client
        return self._client

    def _is_enough(self, sight: _Sight) -> bool:
        ignores = self._module.params["evacuations"] == "ignore"
        return not sight.obstacles and (ignores or not sight.leaving)

    def _tell(self, sight: _Sight) -> None:
        self._progress.totals(f"not fit yet: {'; '.join(sight.reasons())}")

    def _clause(self, error: Failure) -> str:
        """Why nothing was seen of the node, and what to do about it; empty if it is no matter of the node's."""
        if error.status in _REFUSALS:
            words = HTTPStatus(error.status).phrase
            return (
                f"the API server answers {words}: let the controller's user get nodes and list VirtualMachineInstances"
            )
        if error.gone and self._client is not None:
            return "there is no such node: correct its name"
        if not error.passing:
            return ""
        told = ", ".join(filter(None, [brief(error.bare), error.in_vain]))
        return f"{told if error.status else f'the API server does not answer ({told})'}: see to it"

    def _failure(self, problems: list[str], remedy: str, trouble: Failure | None = None) -> Failure:
        params = self._module.params
        where = self._client.server if self._client else trouble.where if trouble else ""
        return Failure(
            f"find node {params['name']} fit for virtual machines",
            where,
            (f"after {params['wait_timeout']} s " if self._waits else "") + "; ".join(problems),
            remedy,
            status=trouble.status if trouble else None,
            reason="DeadlineExceeded" if self._waits else "NotFit",
            details={"problems": problems},
        )


def _facts(node: Object) -> JsonObject:
    return {"boot_id": boot_id(node), "heartbeat": heartbeat(node)}


def _problems(params: Mapping[str, Any]) -> Iterator[str]:
    yield from name_problems(params, "name")
    if params["rebooted"] and not params["boot_id"]:
        yield "rebooted is true, but boot_id is not given: what was before, nobody can tell from the node"
    for name in ("heartbeat_age", "wait_sleep"):
        if params[name] < 1:
            yield f"{name} is {params[name]}, but at least 1 second is needed"
