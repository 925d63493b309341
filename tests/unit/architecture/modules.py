# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each module is short, in the action group, finds kubeconfig files as kubernetes.core does, and is documented.

What only documents an action that does everything itself, on the controller, has nothing but documentation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from unit.architecture.tree import Tree, parse

LONGEST_MAIN = 15
# Of each module, and of each that talks to a cluster: its action plugin listens to it.
FRAGMENTS = ("virtops.kubevirt._attributes",)
OF_CLUSTERS = (*FRAGMENTS, "virtops.kubevirt._attributes.action_group", "virtops.kubevirt._progress")
ATTRIBUTES = ("check_mode", "diff_mode", "idempotent")
# As Failure.to_json has them.
ERROR = ("attempted", "object", "status", "reason", "server_message", "remedy")


def check(tree: Tree) -> Iterator[str]:
    modules = tree.names("plugins/modules")
    runtime: dict[str, Any] = yaml.safe_load(tree.files["meta/runtime.yml"])
    group: list[str] = runtime["action_groups"]["own"]
    if "own" not in runtime["action_groups"]["all"][0]["metadata"]["extend_group"]:
        yield "meta/runtime.yml: action group `all` does not extend `own`."
    actions = tree.names("plugins/action")
    stubs = [name for name in modules if _is_stub(tree.files[f"plugins/modules/{name}.py"])]
    for name in modules:
        path = f"plugins/modules/{name}.py"
        if name in stubs:
            if name in group:
                yield f"{path}: its action talks to no cluster, so it has no place in action group `own`."
            yield from _documentation(path, tree.files[path], FRAGMENTS)
            continue
        if name not in group:
            yield f"{path}: meta/runtime.yml lacks it in action group `own`, so module_defaults do not reach it."
        if name not in actions:
            yield f"{path}: it has no action plugin plugins/action/{name}.py, so a kubeconfig in a role is not found."
        yield from _documentation(path, tree.files[path], OF_CLUSTERS)
        yield from _error(path, tree.files[path])
        yield from _main(path, tree.files[path])
    for name in sorted(set(group) - set(modules)):
        yield f"meta/runtime.yml: it names {name}, but there is no plugins/modules/{name}.py."
    for name in sorted(set(runtime.get("plugin_routing", {}).get("action", {})) & set(modules)):
        yield f"meta/runtime.yml: the redirect of {name} would win over plugins/action/{name}.py; remove it."


def _is_stub(text: str) -> bool:
    """It only documents an action that needs no module."""
    return not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.If) for node in parse(text).body)


def _documentation(path: str, text: str, fragments: Iterable[str]) -> Iterator[str]:
    documentation = _found(text, "DOCUMENTATION")
    if documentation is None:
        yield f"{path}: it has no DOCUMENTATION."
        return
    for fragment in fragments:
        if fragment not in documentation.get("extends_documentation_fragment", []):
            yield f"{path}: its documentation does not extend {fragment}."
    for attribute in ATTRIBUTES:
        if "support" not in documentation.get("attributes", {}).get(attribute, {}):
            yield f"{path}: its documentation does not say how far it supports {attribute}."


def _error(path: str, text: str) -> Iterator[str]:
    told = (_found(text, "RETURN") or {}).get("error", {}).get("contains", {})
    for name in ERROR:
        if name not in told:
            yield f"{path}: its RETURN does not say that error has {name}."


def _found(text: str, name: str) -> dict[str, Any] | None:
    """What a module documents under this name."""
    for node in parse(text).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=ast.Constant(value=str() as source)) if found == name:
                documented: dict[str, Any] = yaml.safe_load(source)
                return documented
    return None


def _main(path: str, text: str) -> Iterator[str]:
    mains = [node for node in parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    if not mains:
        yield f"{path}: it has no main()."
    for main in mains:
        lines = (main.end_lineno or main.lineno) - main.lineno
        if lines > LONGEST_MAIN:
            yield f"{path}: main() has {lines} lines, more than {LONGEST_MAIN}; it only parses, calls and exits."
