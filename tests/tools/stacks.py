# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The combinations of ansible-core and Python on which the collection is proved, and the paths they share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / ".build"
REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
COLLECTION = Path("ansible_collections/virtops/kubevirt")


class ToolsError(Exception):
    """Something a person can act on; its text is printed without a traceback."""


@dataclass(frozen=True)
class Stack:
    """One ansible-core line with the Pythons it may run on, the preferred one first.

    `pip`: version that ansible-test of this line installs into its own environments.
    """

    name: str
    pythons: tuple[str, ...]
    pip: str

    @property
    def lock(self) -> Path:
        """Every package of the stack's environment, pinned with hashes."""
        return REQUIREMENTS / f"stack-{self.name}.txt"

    @property
    def wheels(self) -> Path:
        """Wheels that are only unpacked, pinned likewise: `ansible` for its collections, `pip` for ansible-test."""
        return REQUIREMENTS / f"wheels-{self.name}.txt"

    @property
    def tree(self) -> Path:
        """Folder for ANSIBLE_COLLECTIONS_PATH and PYTHONPATH: this repository and the collections it depends on."""
        return BUILD / self.name


MAIN = Stack("2.19", pythons=("3.11", "3.12", "3.13"), pip="24.2")
NEXT = Stack("2.21", pythons=("3.13",), pip="25.2")
STACKS = {stack.name: stack for stack in (MAIN, NEXT)}
