# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where two answers about the same pod differ."""

from __future__ import annotations

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
    if theirs.get("error") and not theirs["fit"]:
        return []  # It failed while filtering: what had been found until then is no answer.
    found = []
    for key, empty in (("fit", []), ("message", ""), ("gated", [])):
        if (theirs_ := _plain(theirs.get(key, empty))) != (ours_ := _plain(ours.get(key, empty))):
            found.append(f"{key}: theirs {theirs_!r}, ours {ours_!r}")
    for key, empty in (("unfit", []), ("scores", None)):
        mine, other = ours.get(key) or {}, theirs.get(key) or {}
        for name in sorted({*mine, *other}):
            if (theirs_ := _plain(other.get(name, empty))) != (ours_ := _plain(mine.get(name, empty))):
                found.append(f"{key} of {name}: theirs {theirs_!r}, ours {ours_!r}")
    return found


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value
