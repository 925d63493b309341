# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with which object, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject

Operation = JsonObject


class Severity(str, Enum):
    """How much a finding matters, the worst first.

    ERROR: maintenance will stop at it, or a VM will go down. WARNING: a rule does not do what it says, or leaves no
    room to move. INFO: nothing happens yet.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class LintedObject:
    """The object at fault, which is the one that a patch changes. `namespace` is empty for objects without one."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One object at fault.

    `consequence`, `remedy`: one sentence each. `field`: JSON pointer of what is wrong, where it is a single field.
    `aspect`: what tells it from other problems of the same rule and object where no field does.
    `patch`: operations of a JSON patch (RFC 6902) that mends it, if that can be said without asking anyone.
    `vmis`: namespace/name of the running VMIs that it concerns. `severity`: where it is not the rule's.
    """

    subject: LintedObject
    consequence: str
    remedy: str
    field: str = ""
    aspect: str = ""
    patch: tuple[Operation, ...] = ()
    vmis: tuple[str, ...] = ()
    severity: Severity | None = None
