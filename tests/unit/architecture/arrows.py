# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which package may import which: knowledge flows upwards only.

_scheduler, _kubevirt, _plan <- _planner <- _lint
_model <- _scheduler, _kubevirt, _plan; _plan <- _execution, _report     (what is planned, carried out and told)
_model <- _nodes                                (what is written on nodes)
_model <- _rights                               (what has to be allowed, and why)
_scheduler, _kubevirt, _nodes <- _workloads     (what is written about VMs)
_kubevirt, _nodes <- _inventory                 (what an inventory tells of nodes)
_model, _plan, _execution, _rights <- _cluster <- _module  (the API; what modules share, which imports all pure ones)
_cluster/transport <- _cluster/looks <- _cluster/verbs <- the rest of _cluster
_scheduler, _kubevirt, _plan <- tests/checker   (another way to the planner's answers, which shares nothing with it)
module_utils <- modules;  module_utils, plugin_utils <- filter, test, action, inventory, lookup
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unit.architecture.imports import COLLECTION, PLUGINS, imported, within
from unit.architecture.tree import Tree

ENGINE = frozenset({"_model", "_scheduler", "_kubevirt"})

# Packages of module_utils, and what each may import beside itself.
MODULE_UTILS: dict[str, frozenset[str]] = {
    "_model": frozenset(),
    "_scheduler": frozenset({"_model"}),
    "_kubevirt": frozenset({"_model"}),
    "_nodes": frozenset({"_model"}),
    "_rights": frozenset({"_model"}),
    "_plan": frozenset({"_model"}),
    "_planner": ENGINE | {"_plan"},
    "_lint": ENGINE | {"_planner"},
    "_execution": frozenset({"_model", "_plan"}),
    "_report": frozenset({"_model", "_plan"}),
    "_workloads": ENGINE | {"_nodes"},
    "_inventory": frozenset({"_model", "_kubevirt", "_nodes"}),
    "_cluster": frozenset({"_model", "_execution", "_plan", "_rights"}),
    "_module": frozenset(
        {"_model", "_cluster", "_workloads", "_kubevirt", "_plan", "_planner", "_execution", "_report", "_rights"}
    ),
}

# What of module_utils the checker of plans may import, which lies beside the tests.
CHECKER = ENGINE | {"_plan"}

# Folders of _cluster, each of which may import those before it. What lies beside them stands on all of them.
CLUSTER_LAYERS = ("transport", "looks", "verbs")

# Folders of plugins, and the folders each may import. With a module Ansible sends module_utils alone.
PLUGIN_FOLDERS: dict[str, frozenset[str]] = {
    "module_utils": frozenset({"module_utils"}),
    "plugin_utils": frozenset({"module_utils", "plugin_utils"}),
    "modules": frozenset({"module_utils"}),
    "doc_fragments": frozenset(),
    **dict.fromkeys(("action", "filter", "inventory", "lookup", "test"), frozenset({"module_utils", "plugin_utils"})),
}

# Where the cluster's clients may be imported. An action stands on kubernetes.core's, for kubeconfig files and vault.
CLIENTS: dict[str, tuple[str, ...]] = {
    "kubernetes": ("plugins/module_utils/_cluster/",),
    "ansible_collections.kubernetes.core": (
        "plugins/module_utils/_cluster/",
        "plugins/module_utils/_module/",
        "plugins/plugin_utils/",
        "plugins/action/",
    ),
}


def check(tree: Tree) -> Iterator[str]:
    for path, text in tree.matching("plugins/*.py"):
        folder, _sep, rest = path.removeprefix("plugins/").partition("/")
        if folder not in PLUGIN_FOLDERS:
            yield f"{path}: plugins/{folder} has no place among the layers; add it to PLUGIN_FOLDERS or move the file."
            continue
        package = rest.split("/")[0] if folder == "module_utils" and "/" in rest else None
        if folder == "module_utils" and package not in MODULE_UTILS and rest != "__init__.py":
            yield f"{path}: it stands in none of module_utils' packages {', '.join(MODULE_UTILS)}."
            continue
        for line, name in imported(path, text):
            yield from _own(f"{path}:{line}", folder, package, name)
            yield from _clients(path, line, name)
            yield from _layers(path, line, name)
    for path, text in tree.matching("tests/checker/*.py"):
        for line, name in imported(path, text):
            yield from _checker(f"{path}:{line}", name)


def _checker(place: str, name: str) -> Iterator[str]:
    if within(name, COLLECTION):
        parts = name.removeprefix(f"{PLUGINS}.").split(".")
        if parts[:1] != ["module_utils"] or not CHECKER.issuperset(parts[1:2]):
            yield f"{place}: the checker of plans may not import {name} (allowed: {', '.join(sorted(CHECKER))})."


def _own(place: str, folder: str, package: str | None, name: str) -> Iterator[str]:
    """Violations by an import of something of the collection's own."""
    if not within(name, PLUGINS):
        return
    parts = name.removeprefix(f"{PLUGINS}.").split(".")
    if parts[0] not in PLUGIN_FOLDERS[folder]:
        yield f"{place}: plugins/{folder} may not import {name}, which stands beside or above it."
    elif package and parts[0] == "module_utils" and len(parts) > 1:
        allowed = MODULE_UTILS[package] | {package}
        if parts[1] not in allowed:
            yield f"{place}: {package} may not import {parts[1]} (allowed: {', '.join(sorted(allowed))})."


def _layers(path: str, line: int, name: str) -> Iterator[str]:
    importer, target = path.split("/"), ["plugins", *name.removeprefix(f"{PLUGINS}.").split(".")]
    here, there = _layer(importer), _layer(target)
    if here is not None and there is not None and here < there:
        yield f"{path}:{line}: _cluster/{importer[3]} may not import _cluster/{target[3]}, which stands above it."


def _layer(parts: Sequence[str]) -> int | None:
    """Of what stands in _cluster; None for everything else."""
    if len(parts) < 4 or list(parts[:3]) != ["plugins", "module_utils", "_cluster"]:
        return None
    return CLUSTER_LAYERS.index(parts[3]) if parts[3] in CLUSTER_LAYERS else len(CLUSTER_LAYERS)


def _clients(path: str, line: int, name: str) -> Iterator[str]:
    for client, places in CLIENTS.items():
        if within(name, client) and not path.startswith(places):
            yield f"{path}:{line}: {client} may be imported only in {', '.join(places)}."
