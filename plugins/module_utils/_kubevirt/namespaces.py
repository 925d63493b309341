# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a cluster's lists shapes the pods of a namespace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]
Lists = Mapping[str, Sequence[Object]]

_OF_A_NAMESPACE = ("limitranges", "resourcequotas")
_OF_ALL = ("priorityclasses", "runtimeclasses")


class Namespaces:
    """The lists, indexed once for questions about many VMIs. Nothing is copied."""

    def __init__(self, lists: Lists) -> None:
        self._common = {name: lists.get(name) or () for name in _OF_ALL}
        self._own: defaultdict[str, defaultdict[str, list[Object]]] = defaultdict(lambda: defaultdict(list))
        for name in _OF_A_NAMESPACE:
            for item in lists.get(name) or ():
                self._own[item["metadata"].get("namespace") or "default"][name].append(item)
        for item in lists.get("namespaces") or ():
            self._own[item["metadata"]["name"]]["namespaces"].append(item)

    def lists(self, name: str) -> Lists:
        """The namespace itself, its limit ranges and quotas, and the classes that all namespaces share."""
        return {**self._common, **self._own.get(name, {})}
