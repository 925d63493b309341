# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MigrationPolicy that applies to a VMI, and how the VMI is migrated under it.

Follows pkg/virt-controller/watch/migration/migrationpolicy.go, matchMigrationPolicy in migration.go beside it, and
GetMigrationConfByPolicy in kubevirt.io/api/migrations/v1alpha1/types.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import Labels

# Fields of a policy, and what they are called here.
_PLAIN = {
    "allowAutoConverge": "auto_converge",
    "completionTimeoutPerGiB": "completion_timeout_per_gib",
    "allowPostCopy": "post_copy",
}


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a VMI is migrated. policy: the name of what changed the cluster's, empty for none."""

    policy: str
    migrations: Migrations


def terms(vmi: Object, namespace_labels: Labels, policies: Iterable[Object], cluster: Migrations) -> Terms:
    """Raises `QuantityError`."""
    policy = matching(vmi, namespace_labels, policies)
    changes = _changes(policy["spec"]) if policy else {}
    if policy is None or not changes:
        return Terms("", cluster)
    return Terms(policy["metadata"]["name"], replace(cluster, **changes))


def matching(vmi: Object, namespace_labels: Labels, policies: Iterable[Object]) -> Object | None:
    """The policy of which most labels match; of equals the one with more labels of the VMI, then the first by name."""
    own = vmi["metadata"].get("labels") or {}
    found = ((policy, _score(policy.get("spec") or {}, own, namespace_labels)) for policy in policies)
    ranked = [(-total, -of_vmi, policy["metadata"]["name"], policy) for policy, (total, of_vmi) in found if total >= 0]
    return min(ranked, key=lambda entry: entry[:3])[3] if ranked else None


def _score(spec: Object, own: Labels, of_namespace: Labels) -> tuple[int, int]:
    """How many labels match, in all and of the VMI; negative if one does not, or the policy has no selectors."""
    selectors = spec.get("selectors")
    # KubeVirt does not look at the selectors of a VMI without any label, which no running one is.
    if selectors is None:
        return -1, 0
    wanted, around = selectors.get("virtualMachineInstanceSelector") or {}, selectors.get("namespaceSelector") or {}
    if own and not (wanted.items() <= own.items() and around.items() <= of_namespace.items()):
        return -1, 0
    return (len(wanted) + len(around), len(wanted)) if own else (0, 0)


def _changes(spec: Object) -> JsonObject:
    changes = {name: spec[field] for field, name in _PLAIN.items() if spec.get(field) is not None}
    if spec.get("bandwidthPerMigration") is not None:
        changes["bandwidth"] = quantity.units(quantity.parse(spec["bandwidthPerMigration"]))
    # Whoever allows post-copy allows to disturb the guest, unless it is denied in so many words.
    disruption = spec.get("allowWorkloadDisruption")
    if disruption is None:
        disruption = spec.get("allowPostCopy")
    if disruption is not None:
        changes["allow_workload_disruption"] = disruption
    return changes
