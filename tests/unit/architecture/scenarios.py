# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Molecule scenario has what it is for: Molecule passes over one without molecule.yml, and over missing playbooks."""

from __future__ import annotations

from collections.abc import Iterator

from unit.architecture.tree import Tree

FOLDER = "extensions/molecule"
LIFECYCLE = "default"
FILES = ("molecule.yml", "converge.yml", "verify.yml")


def check(tree: Tree) -> Iterator[str]:
    for scenario in tree.folders(FOLDER):
        for name in FILES if scenario != LIFECYCLE else ():
            if f"{FOLDER}/{scenario}/{name}" not in tree.files:
                yield f"{FOLDER}/{scenario}: it has no {name}, so it proves nothing."
