# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the simulator can do to the cluster, as values. writer.py carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Author = Literal["kubelet", "virt-handler"]


@dataclass(frozen=True)
class Patch:
    """A change to a pod or a node that takes effect only on the object as it was when the change was decided.

    `path`: URL path. `version`: the object's resourceVersion then. `author`: as whom. `body`: a strategic merge patch.
    `says`: the line for the log, "" for none.
    """

    path: str
    version: str
    author: Author
    body: dict[str, Any]
    says: str


@dataclass(frozen=True)
class Replacement:
    """A VMI as it is to be, in place of the one with the same resourceVersion; virt-handler writes VMIs whole, too.

    (A merge patch would not do: the API server drops nulls from lists then, and virt-controller's own patches, which
    test for them, would fail from then on.)
    """

    path: str
    obj: dict[str, Any]
    says: str


@dataclass(frozen=True)
class Boot:
    """A machine comes up again, with a new boot ID; containers of its pods restart, or have failed if they must not."""

    node: str
    boot_id: str

    @property
    def says(self) -> str:
        return f"node {self.node} boots with boot ID {self.boot_id}"


Change = Patch | Replacement | Boot


@dataclass(frozen=True)
class Decision:
    """The next change, if any, and when to decide again even if nothing is seen to happen (seconds since the epoch)."""

    change: Change | None = None
    wake: float | None = None


NOTHING = Decision()
