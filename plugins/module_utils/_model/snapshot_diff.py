# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How two snapshots differ, in a few lines for people: counts, nodes and VMs that came, went, moved or changed state.

Never the objects themselves: the lists of a large cluster are hundreds of megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot import Header, Snapshot

# Per snapshot. What is left out is counted in a last line.
MOST_DIFFERENCES = 100
# The lists looked at.
COMPARED = ("nodes", "vmis")


def difference(before: Snapshot | None, after: Snapshot) -> dict[str, str]:
    """What modules return as `diff`: two texts with the lines in which the snapshots differ, empty where they agree."""
    old = _facts(before) if before else {}
    # Without an earlier one there is nothing to compare with; the counts say what the first one holds.
    new = _facts(after) if before else _counts(after.header)
    return {"before": _text(old, new), "after": _text(new, old)}


def _text(facts: Mapping[str, str], others: Mapping[str, str]) -> str:
    lines = [f"{key}: {value}" for key, value in facts.items() if others.get(key) != value]
    if len(lines) > MOST_DIFFERENCES:
        lines[MOST_DIFFERENCES:] = [f"and {len(lines) - MOST_DIFFERENCES} more"]
    return "".join(f"{line}\n" for line in lines)


def _facts(snapshot: Snapshot) -> dict[str, str]:
    return {
        **_counts(snapshot.header),
        **{f"node {item['metadata']['name']}": _node(item) for item in snapshot.lists["nodes"]},
        **{
            f"vmi {item['metadata'].get('namespace')}/{item['metadata']['name']}": _vmi(item)
            for item in snapshot.lists["vmis"]
        },
    }


def _counts(header: Header | None) -> dict[str, str]:
    if header is None:
        return {}
    cluster = {"kubernetes": header.cluster.kubernetes_version, "kubevirt": header.cluster.kubevirt_version}
    return {**cluster, "cluster": header.cluster.uid, **{name: str(count) for name, count in header.counts.items()}}


def _node(node: Object) -> str:
    status = node.get("status") or {}
    ready = next((entry["status"] for entry in status.get("conditions") or () if entry["type"] == "Ready"), "Unknown")
    words = ["ready" if ready == "True" else "not ready"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("cordoned")
    return ", ".join(words)


def _vmi(vmi: Object) -> str:
    status: Object = vmi.get("status") or {}
    place = f" on {status['nodeName']}" if status.get("nodeName") else ""
    return f"{status.get('phase') or 'Pending'}{place}"
