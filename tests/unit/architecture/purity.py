# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's packages are pure: the same values in, the same values out.

They import neither Ansible nor a client of Kubernetes, do no I/O, and take no clock or randomness they are not given.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from unit.architecture.arrows import MODULE_UTILS
from unit.architecture.imports import COLLECTION, imported, within
from unit.architecture.tree import Tree, parse

PURE = tuple(name for name in MODULE_UTILS if name not in ("_cluster", "_module"))

# Modules of the standard library that reach out of the process, wait, or give another answer each time.
IMPURE = frozenset(
    """
    asyncio builtins ctypes fcntl ftplib getpass glob http imaplib importlib io locale logging mmap multiprocessing os
    pathlib pickle platform random runpy secrets select selectors shelve shutil signal smtplib socket socketserver
    sqlite3 ssl subprocess sys tempfile threading time urllib uuid
    """.split()
)
IMPURE_CALLS = frozenset({"__import__", "breakpoint", "eval", "exec", "input", "open", "print"})
# Methods of the datetime module's classes that read the clock.
CLOCK = frozenset({"now", "today", "utcnow"})

# Libraries of pure computation, and who may use them. The solver is slow to import: only the planner does.
LIBRARIES: dict[str, tuple[str, ...]] = {"jmespath": PURE, "numpy": PURE, "ortools": ("_planner",)}


def check(tree: Tree) -> Iterator[str]:
    for package in PURE:
        for path, text in tree.matching(f"plugins/module_utils/{package}/*.py"):
            for line, name in imported(path, text):
                yield from _import(f"{path}:{line}", package, name)
            yield from _calls(path, text)


def _import(place: str, package: str, name: str) -> Iterator[str]:
    top = name.split(".", maxsplit=1)[0]
    if within(name, COLLECTION) or package in LIBRARIES.get(top, ()):
        return
    if top in IMPURE:
        yield f"{place}: {package} is pure and may not import {top}; let the caller pass in what is needed from it."
    elif top not in sys.stdlib_module_names:
        yield f"{place}: {package} is pure and may not import {name}."


def _calls(path: str, text: str) -> Iterator[str]:
    for node in ast.walk(parse(text)):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id=name) if name in IMPURE_CALLS:
                yield f"{path}:{node.lineno}: a pure package may not call {name}()."
            case ast.Attribute(value=ast.Name(id="date" | "datetime"), attr=name) if name in CLOCK:
                yield f"{path}:{node.lineno}: a pure package may not read the clock with {name}(); let it be passed in."
