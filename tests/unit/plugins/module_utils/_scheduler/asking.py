# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask for a verdict as tests like to read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._scheduler.verdict import verdict


def reasons(pod: Mapping[str, Any], **lists: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Why the pod does not fit, for each node in the order of the list; an empty list where it fits."""
    answer = verdict(lists, pod)
    return {raw["metadata"]["name"]: answer["unfit"].get(raw["metadata"]["name"], []) for raw in lists["nodes"]}


def fit(pod: Mapping[str, Any], **lists: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the nodes that fit."""
    found: list[str] = verdict(lists, pod)["fit"]
    return found


def message(pod: Mapping[str, Any], **lists: Sequence[Mapping[str, Any]]) -> str:
    found: str = verdict(lists, pod)["message"]
    return found


def scores(pod: Mapping[str, Any], **lists: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = verdict(lists, pod, scores=True)["scores"]
    return found
