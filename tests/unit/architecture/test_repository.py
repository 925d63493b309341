# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository keeps every rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.architecture.registry import RULES
from unit.architecture.tree import Tree, read


@pytest.fixture(scope="module")
def repository() -> Tree:
    return read(Path(__file__).resolve().parents[3])


@pytest.mark.parametrize("name", RULES)
def test_rule(name: str, repository: Tree) -> None:
    violations = list(RULES[name](repository))
    assert not violations, "\n" + "\n".join(violations)


def test_the_repository_is_seen(repository: Tree) -> None:
    """A reader that saw nothing would keep every rule."""
    assert {"galaxy.yml", "meta/runtime.yml", "plugins/doc_fragments/_attributes.py"} <= repository.files.keys()
