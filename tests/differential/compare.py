# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where two answers about the same pod differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def differences(theirs: Json, ours: Json) -> list[str]:
    """One line for each thing in which our answer is not kube-scheduler's; empty when they agree.

    Orders of nodes and of the reasons of a node have no meaning: kube-scheduler visits nodes and resources in random
    order. Words of internal failures may differ; that there is one may not.
    """
    if "failure" in ours:
        return [f"we fail: {ours['failure']}"]
    if bool(theirs.get("error")) != bool(ours.get("error")):
        return [f"failing: theirs {theirs.get('error')!r}, ours {ours.get('error')!r}"]
    return [
        f"{part}: theirs {their!r}, ours {our!r}"
        for part, their, our in _parts(theirs, ours)
        if _plain(their) != _plain(our)
    ]


def _parts(theirs: Json, ours: Json) -> Iterator[tuple[str, Any, Any]]:
    """What is to be equal: (name, theirs, ours)."""
    for key in ("fit", "message", "gated"):
        yield key, theirs.get(key) or None, ours.get(key) or None
    for key in ("unfit", "scores"):
        their, our = theirs.get(key) or {}, ours.get(key) or {}
        for node in sorted({*their, *our}):
            yield f"{key} of {node}", their.get(node), our.get(node)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value
