# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster of objects, two nodes in two zones by default, and what is found in it."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import Finding
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.lint import lint

from integration.lint.case import Case, Place, Proof
from integration.lint.objects import ZONE
from testbed.api import Object
from unit.plugins.module_utils._lint.world import Lists, world

TWO = (Place({ZONE: "a"}), Place({ZONE: "b"}))


def cluster(*planted: Object, places: tuple[Place, ...] = TWO) -> Lists:
    """All objects are in the namespace lint-detail, and its nodes are detail-1, detail-2 and so on."""
    case = Case("detail", "", Proof.POD_PENDING, planted, places=places)
    return copy.deepcopy(world(case.objects()))


def rules(lists: Lists, **options: Any) -> list[str]:
    return [finding.rule.id for finding in lint(lists, **options)]


def only(lists: Lists, **options: Any) -> Finding:
    (finding,) = lint(lists, **options)
    return finding
