# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task says of placement, as Ansible gives it to the module: every option there, defaults filled in."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.replica_set_arguments import placement, spec
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.placement import Own
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.replica_set import ReplicaSetRequest

Json = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SELECTOR: Json = {"matchLabels": {"app": "db"}}
OWN = Own("shop", SELECTOR, {"app": "db"})


def worded(**options: Any) -> Json:
    """The block `placement` with these options."""
    return _validated(placement()["options"], options)


def wish(**options: Any) -> ReplicaSetRequest:
    """Of a task for the replica set shop/db."""
    given = _validated(spec(), {"namespace": "shop", "name": "db", **options})
    names = ("namespace", "name", "replicas", "paused", "selector", "template", "placement", "masquerade")
    return ReplicaSetRequest(**{name: given[name] for name in names}, eviction_strategy=given["eviction_strategy"])


def template(*, labels: Json | None = None, **fields: Any) -> Json:
    """Of VMIs of 1 GiB with the label app=db."""
    return {
        "metadata": {"labels": {"app": "db"} if labels is None else labels},
        "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}, **fields},
    }


def _validated(options: Json, given: Json) -> Json:
    result = ArgumentSpecValidator(options).validate(given)
    assert not result.error_messages, result.error_messages
    return dict(result.validated_parameters)
