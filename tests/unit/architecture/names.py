# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One name, one meaning: no two files of module_utils define public classes of the same name.

Whoever reads `Rule` or `Change` far from its import shall not have to ask which one.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from unit.architecture.tree import Tree, parse

# Names that mean two things for a good reason, with the reason.
KNOWN: Mapping[str, str] = {}


def check(tree: Tree) -> Iterator[str]:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in tree.matching("plugins/module_utils/*.py"):
        for node in parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1 and name not in KNOWN:
            yield f"{paths[1]}: {name} is also a class in {paths[0]}; give one of them another name."
