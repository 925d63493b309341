# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository as a value: what the rules look at.

A rule is a function from a `Tree` to sentences, one for each violation, and reads nothing else. So a rule is tested on
a tree of three lines, and the repository is read once for all of them.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Tree:
    """Text files by their path from the repository's root, with "/" between folders."""

    files: Mapping[str, str]

    def matching(self, *patterns: str) -> Iterator[tuple[str, str]]:
        """(path, text) of the files that match a pattern, sorted; a `*` also stands for slashes."""
        for path in sorted(self.files):
            if any(fnmatch(path, pattern) for pattern in patterns):
                yield path, self.files[path]

    def names(self, folder: str, suffix: str = ".py") -> list[str]:
        """Stems of the files directly in a folder, without `__init__`."""
        paths = (PurePosixPath(path) for path in self.files)
        return sorted(
            path.stem
            for path in paths
            if str(path.parent) == folder and path.suffix == suffix and path.stem != "__init__"
        )

    def folders(self, parent: str) -> list[str]:
        """Names of the folders directly in a folder."""
        prefix = f"{parent}/"
        rest = (path.removeprefix(prefix) for path in self.files if path.startswith(prefix))
        return sorted({path.split("/")[0] for path in rest if "/" in path})


Rule = Callable[[Tree], Iterator[str]]


def read(root: Path) -> Tree:
    """All text files that git knows or would add."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    files = {}
    for name in filter(None, names):
        path = root / name
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if b"\0" not in content:
                files[name] = content.decode()
    return Tree(files)


@cache
def parse(text: str) -> ast.Module:
    """The syntax tree of a Python file; several rules ask for the same ones."""
    return ast.parse(text)
