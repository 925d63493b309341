# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance types and preferences of a cluster, and which of them a VM goes by.

Follows pkg/instancetype/find, pkg/instancetype/preference/find and pkg/instancetype/compatibility: what a VM was
started with before is stored in a ControllerRevision and counts, however the named object has changed since.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.workloads import title
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object

_GROUP = "instancetype.kubevirt.io"
_REVISIONS = "controllerrevisions"
_OBJECT_NAME = f"{_GROUP}/object-name"


@dataclass(frozen=True, slots=True)
class Role:
    """What a VM names in one field of its spec. kinds: the namespace's own, the cluster's. lists: of these."""

    field: str
    kinds: tuple[str, str]
    lists: tuple[str, str]
    matcher: str
    not_found: str


INSTANCE_TYPE = Role(
    field="instancetype",
    kinds=("VirtualMachineInstancetype", "VirtualMachineClusterInstancetype"),
    lists=("instancetypes", "clusterinstancetypes"),
    matcher="InstancetypeMatcher",
    not_found="FailedFindInstancetype",
)
PREFERENCE = Role(
    field="preference",
    kinds=("VirtualMachinePreference", "VirtualMachineClusterPreference"),
    lists=("preferences", "clusterpreferences"),
    matcher="PreferenceMatcher",
    not_found="FailedFindPreference",
)
_LISTS = (*INSTANCE_TYPE.lists, *PREFERENCE.lists, _REVISIONS)
_OF_CLUSTER = (INSTANCE_TYPE.lists[1], PREFERENCE.lists[1])


class NotFoundError(ExpectedError, ValueError):
    """What a VM names is not there, in virt-controller's words."""


@dataclass(frozen=True, slots=True)
class Found:
    """spec: None if the VM names nothing, or if that is not known. stored: with the VM, in a revision.

    open: a phrase for what is not known of it; empty if all is.
    """

    spec: Object | None = None
    stored: bool = False
    open: str = ""


class InstanceTypes:
    """The lists, indexed once. Nothing is copied."""

    def __init__(self, lists: Lists) -> None:
        self._items = {
            name: {_name(item) if name in _OF_CLUSTER else title(item): item for item in lists.get(name) or ()}
            for name in _LISTS
        }
        # Who reads none of them may not be allowed to, so that nothing can be said to be missing.
        self._known = any(self._items.values())

    def of(self, vm: Object, role: Role) -> Found:
        """What a VirtualMachine goes by. Raises NotFoundError."""
        named = vm["spec"].get(role.field)
        if not named:
            return Found()
        if not named.get("name") and not named.get("revisionName"):
            volume = named.get("inferFromVolume") or ""
            return Found(open=f"{role.field} of the VM, which volume {volume} tells when the VM is created")
        revision = _revision(vm, role)
        stored = self._items[_REVISIONS].get(f"{_namespace(vm)}/{revision}") if revision else None
        if stored is not None and (named.get("revisionName") or _is_of(stored, named["name"])):
            return Found(_content(stored, role), stored=True)
        if revision and stored is None:
            return self._without_revision(vm, role, revision)
        return self._named(vm, role)

    def _without_revision(self, vm: Object, role: Role, revision: str) -> Found:
        if self._items[_REVISIONS] or _is_reported(vm, role):
            raise NotFoundError(f'controllerrevisions.apps "{revision}" not found')
        found = self._named(vm, role)
        name = f"{vm['spec'][role.field].get('name') or ''} as ControllerRevision {revision} has it"
        return found if found.open else Found(found.spec, open=_unknown(role, name))

    def _named(self, vm: Object, role: Role) -> Found:
        named = vm["spec"][role.field]
        kind = named.get("kind") or role.kinds[1]
        resources = [f"{known.lower()}s" for known in role.kinds]
        resource = next((known for known in resources if kind.lower() in (known, known.removesuffix("s"))), None)
        if resource is None:
            raise NotFoundError(f"got unexpected kind in {role.matcher}: {kind}")
        name, own = named.get("name") or "", resource == resources[0]
        item = self._items[role.lists[0 if own else 1]].get(f"{_namespace(vm)}/{name}" if own else name)
        if item is not None:
            return Found(item["spec"])
        if self._known or _is_reported(vm, role):
            raise NotFoundError(f'{resource}.{_GROUP} "{name}" not found')
        return Found(open=_unknown(role, name))


def _revision(vm: Object, role: Role) -> str:
    """The name of what is stored with the VM; empty if nothing is."""
    reference = (vm.get("status") or {}).get(f"{role.field}Ref") or {}
    stored: str = (reference.get("controllerRevisionRef") or {}).get("name") or ""
    return vm["spec"][role.field].get("revisionName") or stored


def _is_of(revision: Object, name: str) -> bool:
    """A VM that names another object than before goes by that one."""
    return (revision["metadata"].get("labels") or {}).get(_OBJECT_NAME) == name


def _content(revision: Object, role: Role) -> Object:
    data: Object = revision.get("data") or {}
    if data.get("kind") not in role.kinds or not data.get("spec"):
        raise NotFoundError(f"unexpected type in ControllerRevision {title(revision)}: {data.get('kind')}")
    spec: Object = data["spec"]
    return spec


def _is_reported(vm: Object, role: Role) -> bool:
    """Whether virt-controller has said that it is missing."""
    conditions = (vm.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Failure" and entry.get("reason") == role.not_found for entry in conditions)


def _unknown(role: Role, name: str) -> str:
    sets = "CPUs, memory and devices" if role is INSTANCE_TYPE else "machine and devices"
    return f"{role.field} {name} of the VM, which sets {sets} when the VM starts"


def _name(item: Object) -> str:
    name: str = item["metadata"]["name"]
    return name


def _namespace(item: Object) -> str:
    return item["metadata"].get("namespace") or "default"
