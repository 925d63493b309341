# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which evictions disruption budgets allow while pods go and their replacements come."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.disruption_budget import Budgets, EvictionRefusal
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Lists, Object
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.selectors import LabelSelector, label_selector


class Disruptions:
    """As many pods of a budget may be away as its status says; those that are back are ready.

    Raises `SelectorError`.
    """

    def __init__(self, lists: Lists) -> None:
        self._budgets: defaultdict[str, list[tuple[Object, LabelSelector]]] = defaultdict(list)
        for item in lists.get("pdbs") or ():
            selector = label_selector((item.get("spec") or {}).get("selector"))
            self._budgets[_namespace(item)].append((item, selector))
        self._away: Counter[tuple[str, str]] = Counter()

    def refusal(self, pod: Object) -> EvictionRefusal | None:
        """Why an eviction of the pod would be refused now, or None."""
        return Budgets(map(self._now, self._covering(pod))).refusal(pod)

    def leave(self, pod: Object) -> None:
        self._away.update(map(_key, self._covering(pod)))

    def come_back(self, pod: Object) -> None:
        self._away.subtract(map(_key, self._covering(pod)))

    def _covering(self, pod: Object) -> Iterator[Object]:
        labels = pod["metadata"].get("labels") or {}
        return (item for item, selector in self._budgets.get(_namespace(pod), ()) if selector.matches(labels))

    def _now(self, item: Object) -> Object:
        status, away = item.get("status") or {}, self._away[_key(item)]
        allowed, healthy = (status.get(name) or 0 for name in ("disruptionsAllowed", "currentHealthy"))
        return {**item, "status": {**status, "disruptionsAllowed": allowed - away, "currentHealthy": healthy - away}}


def _key(item: Object) -> tuple[str, str]:
    return _namespace(item), item["metadata"]["name"]


def _namespace(item: Object) -> str:
    return item["metadata"].get("namespace") or "default"
