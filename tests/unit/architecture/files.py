# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that every file keeps: its size, its header, and that it speaks of no machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tomllib

from unit.architecture.tree import Tree

MOST_LINES = 400
MEASURED = ("*.py", "*.yml", "*.yaml", "*.go", "*.sh", "*.j2", "*.toml", "Makefile")
# Written by a tool: it grows with each release.
GENERATED = ("changelogs/changelog.yaml",)

HOLDER = "Contributors to the virtops.kubevirt project"
# In two parts, as reuse takes the tag for this file's own wherever it stands.
LICENSE = "SPDX-License-Identifier" + ": GPL-3.0-or-later"
PYTHON_HEADER = (
    f"# Copyright: {HOLDER}",
    "# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)",
    f"# {LICENSE}",
)
FUTURE = "from __future__ import annotations"

# A home folder, or a workplace in the root folder: paths that exist on one machine only.
MACHINE_PATH = re.compile(r"(?<![\w.}$~-])/(root|work|home/\w+|Users/\w+)/")


def size(tree: Tree) -> Iterator[str]:
    for path, text in tree.matching(*MEASURED):
        lines = text.count("\n")
        if lines > MOST_LINES and path not in GENERATED:
            yield f"{path}: {lines} lines, more than {MOST_LINES}; split it by idea."


def header(tree: Tree) -> Iterator[str]:
    exempt = _without_header(tree)
    for path, text in tree.matching("*"):
        if not text or any(_glob(pattern).fullmatch(path) for pattern in exempt) or path.startswith("LICENSES/"):
            continue
        lines = text.splitlines()
        if lines[0].startswith("#!"):
            lines = lines[1:]
        if path.endswith(".py"):
            if tuple(lines[:3]) != PYTHON_HEADER:
                yield f"{path}: it does not begin with the project's three header lines (see CONTRIBUTING.md)."
            elif FUTURE not in lines:
                yield f"{path}: it lacks `{FUTURE}`."
        elif not any(LICENSE in line for line in lines[:5]) or not any(HOLDER in line for line in lines[:5]):
            yield f"{path}: its first lines lack `SPDX-FileCopyrightText: {HOLDER}` and `{LICENSE}`."


def machine_paths(tree: Tree) -> Iterator[str]:
    for path, text in tree.matching("*"):
        for number, line in enumerate(text.splitlines(), start=1):
            found = MACHINE_PATH.search(line)
            if found:
                yield f"{path}:{number}: it names {found[0]}, a path that exists on one machine only."


def _without_header(tree: Tree) -> list[str]:
    """Patterns of the files whose licence stands in REUSE.toml instead."""
    annotations = tomllib.loads(tree.files.get("REUSE.toml", "")).get("annotations", [])
    return [path for entry in annotations if "SPDX-License-Identifier" in entry for path in entry["path"]]


def _glob(pattern: str) -> re.Pattern[str]:
    """REUSE's globs: `**` stands for anything, `*` for anything but a slash."""
    parts = (re.escape(part).replace(r"\*", "[^/]*") for part in pattern.split("**"))
    return re.compile(".*".join(parts))
