# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file alone puts names into paths of the Kubernetes API: it knows which names would make another path of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from unit.architecture.tree import Tree, parse

# Who talks to the API. The pure packages know the kinds that a snapshot holds, and no names.
TALKERS = (
    "plugins/module_utils/_cluster/*.py",
    "plugins/module_utils/_cluster/*/*.py",
    "plugins/module_utils/_module/*.py",
    "plugins/modules/*.py",
)
BUILDER = "plugins/module_utils/_cluster/transport/paths.py"


def check(tree: Tree) -> Iterator[str]:
    for path, text in tree.matching(*TALKERS):
        for node in ast.walk(parse(text)) if path != BUILDER else ():
            if isinstance(node, ast.JoinedStr) and _is_path(node):
                yield f"{path}:{node.lineno}: it builds a path of the API by itself; take collection_path, object_path."


def _is_path(node: ast.JoinedStr) -> bool:
    texts = [part.value for part in node.values if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return any(text.startswith(("/api/", "/apis/")) or "/namespaces/" in text for text in texts)
