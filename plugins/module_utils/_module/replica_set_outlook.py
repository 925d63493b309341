# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look ahead before a replica set is written: what the API server would make of it, and where its VMIs would go."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import (
    read_placement_lists,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.replica_sets import (
    ReplicaSet,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.affinity import blocked_migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError, MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import how_to_install
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.replica_set_results import unplaceable
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.outlook import Outlook
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.replica_set import ReplicaSetRequest


def look_ahead(
    module: Module, client: Client, replica_set: ReplicaSet, spec: Object, vmis: Sequence[Object], *, changed: bool
) -> Outlook:
    """The outlook on a spec. What cannot be found out is an error with unplaceable=fail, else a warning.

    Raises Failure, MissingLibrary.
    """
    strict, wanted = module.params["unplaceable"] == "fail", module.params["unplaceable"] != "ignore"
    view = Outlook(spec, vmis, None)
    try:
        fresh = replica_set.try_vmi(spec["template"])
        view = Outlook(spec, vmis, fresh)
        if wanted and (changed or view.missing):
            view = _foretold(module, client, view, fresh)
    except MissingLibrary as error:
        if strict:
            raise
        module.warn(f"Where replicas of {replica_set.title} would go is not known: {how_to_install(error)}")
    except ExpectedError as error:
        if strict:
            raise _unforeseeable(replica_set, client, error) from error
        module.warn(f"Where replicas of {replica_set.title} would go is not known: {error}")
    except Failure as error:
        if strict or error.passing:
            raise
        module.warn(f"What is to come of replica set {replica_set.title} is not known. {error}")
    return view


def _foretold(module: Module, client: Client, view: Outlook, fresh: Object) -> Outlook:
    """Raises Failure, ExpectedError."""
    # NumPy and the engine take longer to import than all the rest, and most runs find everything as it should be.
    from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads import forecast  # noqa: PLC0415

    lists = read_placement_lists(client, storage=forecast.uses_storage(fresh["spec"]))
    for sentence in forecast.unknown_topology(fresh["spec"], lists["nodes"]):
        module.warn(sentence)
    return forecast.with_places(view, fresh, module.params["name"], lists)


def tell(module: Module, client: Client, request: ReplicaSetRequest, view: Outlook, result: JsonObject) -> None:
    """Warn of what a reader should know. Raises Incomplete instead if the task does not want it so."""
    problems = list(view.problems())
    if problems and module.params["unplaceable"] == "fail":
        raise unplaceable(client.server, request.title, problems, result)
    for problem in problems:
        module.warn(f"Replica set {request.title}: {problem}.")
    # Who chose it in words of placement knows.
    raw = request.placement is None or request.placement["affinity"]
    if raw and result["changed"]:
        for sentence in blocked_migrations(view.spec["template"], request.namespace):
            module.warn(f"Replica set {request.title}: {sentence}")


def _unforeseeable(replica_set: ReplicaSet, client: Client, error: Exception) -> Failure:
    return Failure(
        f"foretell where replicas of {replica_set.title} go",
        client.server,
        str(error),
        "Nothing was written; mend that, or set unplaceable=ignore.",
        reason="Unforeseeable",
    )
