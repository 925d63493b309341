# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets together with the pods they count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.population import Population
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import LintedObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import (
    VMI,
    Object,
    controller,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import LabelSelector, label_selector


@dataclass(frozen=True, slots=True)
class Covered:
    """`machines`: pods that run VMs, `others`: those that a drain evicts and that run none."""

    budget: Object
    selector: LabelSelector
    machines: tuple[Object, ...]
    others: tuple[Object, ...]

    @property
    def subject(self) -> LintedObject:
        metadata = self.budget["metadata"]
        return LintedObject(
            "policy/v1", "PodDisruptionBudget", metadata.get("namespace") or "default", metadata["name"]
        )

    @property
    def least(self) -> int | str | None:
        """minAvailable: a number, a percentage, or None."""
        value: int | str | None = self.budget["spec"].get("minAvailable")
        return value

    @property
    def most(self) -> int | str | None:
        """maxUnavailable: a number, a percentage, or None."""
        value: int | str | None = self.budget["spec"].get("maxUnavailable")
        return value


def budgets(pdbs: Iterable[Object], population: Population) -> Iterator[Covered]:
    """All of them. Raises `SelectorError`."""
    for budget in pdbs:
        selector = label_selector((budget.get("spec") or {}).get("selector"))
        namespace = budget["metadata"].get("namespace") or "default"
        pods = [member.pod for member in population.matching(namespace, selector) if member.pod is not None]
        counted = [(pod, (controller(pod) or {}).get("kind")) for pod in pods]
        machines = tuple(pod for pod, kind in counted if kind == VMI)
        others = tuple(pod for pod, kind in counted if kind not in (VMI, "DaemonSet"))
        yield Covered(budget, selector, machines, others)


def percentage(value: int | str | None) -> int | None:
    """The number of a percentage; None for anything else."""
    text = str(value)
    return int(text[:-1]) if text.endswith("%") and text[:-1].isdecimal() else None


def scaled(value: int | str, whole: int) -> int:
    """A number of pods; of a percentage the share of the whole, rounded up as Kubernetes does."""
    share = percentage(value)
    return int(value) if share is None else math.ceil(share * whole / 100)
