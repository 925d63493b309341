# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One verb on one resource, and what several of them are needed for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """resource: with its subresource. name: of the one object that it is about. of_leases: in their namespace only."""

    group: str
    resource: str
    verb: str
    name: str = ""
    of_leases: bool = False

    @property
    def title(self) -> str:
        """What messages call the resource: `pods/eviction`, `leases.coordination.k8s.io`."""
        title = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{title} {self.name}" if self.name else title


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """Something that the collection does in a cluster. reasons: what each right is for, words that follow "to"."""

    title: str
    reasons: Mapping[Right, str]


def need(title: str, *parts: Mapping[Right, str]) -> Need:
    return Need(title, {right: why for part in parts for right, why in part.items()})


def on(group: str, resource: str, name: str = "", **reasons: str) -> dict[Right, str]:
    """Rights in the whole cluster; `reasons`: by verb."""
    return {Right(group, resource, verb, name): why for verb, why in reasons.items()}


def on_leases(group: str, resource: str, **reasons: str) -> dict[Right, str]:
    """Rights in the namespace of the Leases; `reasons`: by verb."""
    return {Right(group, resource, verb, of_leases=True): why for verb, why in reasons.items()}
