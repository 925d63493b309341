# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each role declares its variables, begins by taking them, and all of them carry its name.

What it asks the cluster it asks by modules of the collection, which share one patience with servers that are busy, as
who has started ansible-playbook: all roles of a run are to mean one cluster, and to read each other's files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from unit.architecture.tree import Tree

FOREIGN = "kubernetes.core."
# Where Ansible itself checks an entry point, which has no options: a task for each host of each batch.
_CHECKED_TWICE = re.compile(r"include_role:\n +name: (virtops\.kubevirt\.\w+)\n(?! +rolespec_validate: false\n)")
# What Ansible does by itself, wherever the task is for.
_WITHOUT_MODULE = ("add_host", "assert", "debug", "fail", "import_tasks", "include_tasks", "meta", "set_fact")
_AT_HOME = {"virtops.kubevirt.take_variables", *(f"ansible.builtin.{name}" for name in _WITHOUT_MODULE)}


def check(tree: Tree) -> Iterator[str]:
    yield from _asking(tree)
    for role in tree.folders("roles"):
        specs_path = f"roles/{role}/meta/argument_specs.yml"
        if specs_path not in tree.files:
            yield f"roles/{role}: it has no meta/argument_specs.yml, so nothing checks or documents its variables."
            continue
        specs: dict[str, Any] = yaml.safe_load(tree.files[specs_path])["argument_specs"]
        if "main" not in specs:
            yield f"{specs_path}: it has no entry point `main`."
        options = {name for entry in specs.values() for name in entry.get("options", {})}
        yield from _taking(tree, role, specs)
        for name in sorted(options):
            yield from _prefix(specs_path, role, name)
        yield from _defaults(tree, role, options)


def _asking(tree: Tree) -> Iterator[str]:
    for path, text in tree.matching("roles/*/tasks/*.yml", "playbooks/*.yml"):
        if FOREIGN in text:
            yield f"{path}: modules of {FOREIGN}* send requests again as they like; use a module of the collection."
    for path, text in tree.matching("roles/*/tasks/*.yml"):
        for task in _becoming(yaml.safe_load(text) or []):
            yield (
                f"{path}: `{task}` runs as whom and where the inventory says; give it `become` and `ansible_become`, as"
                " false, and `ansible_connection`, as local."
            )
    for path, text in tree.matching("playbooks/*.yml"):
        for name in _CHECKED_TWICE.findall(text):
            yield f"{path}: {name} takes its variables itself; include it with `rolespec_validate: false`."


def _becoming(tasks: list[dict[str, Any]]) -> Iterator[str]:
    """Names of tasks that run a module as somebody else, or by ssh, if the inventory says so for all hosts."""
    for task in tasks:
        for part in ("block", "rescue", "always"):
            yield from _becoming(task.get(part, []))
        runs = any("." in key and key not in _AT_HOME for key in task)
        found = task.get("vars", {})
        given = (task.get("become"), found.get("ansible_become"), found.get("ansible_connection"))
        if runs and given != (False, False, "local"):
            yield str(task.get("name"))


def _taking(tree: Tree, role: str, specs: dict[str, Any]) -> Iterator[str]:
    """Ansible itself checks an entry point that tasks have, and refuses texts that `take_variables` understands."""
    for entry, spec in specs.items():
        if spec.get("options") and entry != "variables":
            yield f"roles/{role}/meta/argument_specs.yml: options of entry point `{entry}` belong into `variables`."
    if not any(
        "virtops.kubevirt.take_variables:" in text for _path, text in tree.matching(f"roles/{role}/tasks/*.yml")
    ):
        yield f"roles/{role}: no task takes its variables, so misspelt ones are not refused; begin with take_variables."


def _defaults(tree: Tree, role: str, options: set[str]) -> Iterator[str]:
    for path, text in tree.matching(f"roles/{role}/defaults/*.yml", f"roles/{role}/vars/*.yml"):
        for name in yaml.safe_load(text) or {}:
            yield from _prefix(path, role, name)
            if "/defaults/" in path and name not in options and not name.startswith("_"):
                yield f"{path}: {name} is no option in meta/argument_specs.yml."


def _prefix(path: str, role: str, name: str) -> Iterator[str]:
    if not name.lstrip("_").startswith(f"{role.lstrip('_')}_"):
        bare = name.lstrip("_")
        private = name.removesuffix(bare)
        yield f"{path}: {name} does not begin with the role's name; call it {private}{role}_{bare}."
