# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan files on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan import document
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.document import PlanError
from ansible_collections.virtops.kubevirt.plugins.module_utils._plan.plan import Plan

_WHAT = "the plan"
_TEXT = "the text of the plan"
# How the text begins, and more characters than its first line has.
_DIGEST, _LONGEST = "The plan with the digest ", 200


def load_plan(source: object) -> Plan:
    """The plan of a path, of a document, or of a handle as a module that plans returns it. Raises PlanError, Failure.

    The file of a handle must still hold the plan that it held then, and any file must be for its owner alone.
    """
    if isinstance(source, Mapping) and "schema" in source:
        return document.from_json(source)
    if isinstance(source, (str, os.PathLike)):
        return _read(Path(source), private=True)
    path = source.get("plan_path") if isinstance(source, Mapping) else None
    if isinstance(source, Mapping) and not path and "document" in source:
        return document.from_json(source["document"])
    if not isinstance(source, Mapping) or not path or not isinstance(path, (str, os.PathLike)):
        raise PlanError(
            f"A plan is expected, got {source!r:.60}. Give the path of its file, or what maintenance_plan returned."
        )
    plan = _read(Path(path), private=True)
    if "sha256" in source:
        require_same(path, plan, str(source["sha256"]))
    return plan


def require_same(path: str | os.PathLike[str], plan: Plan, wanted: str) -> None:
    """Raise PlanError unless a plan, read from a path, has the hash that is wanted."""
    found = document.sha256(plan)
    if found != wanted:
        raise PlanError(
            f"{path}: the plan is not the one that was meant (sha256 {found}, expected {wanted}): the file was "
            "replaced or edited since. Take the one that was approved, or plan and approve anew."
        )


def find_plan(path: Path) -> Plan | None:
    """The plan at a path, which is to be replaced; None if there is no file, or one that is no plan."""
    try:
        return _read(path, private=False)
    except (Failure, PlanError):
        return None


def check_writable(path: Path) -> None:
    """Raise Failure if `write` or `write_text` would fail, as far as that can be told without writing."""
    private_file.check_writable(path, _WHAT)
    beside = text_beside(path)
    private_file.check_writable(beside, _TEXT)
    if beside.is_file() and _first_line(beside)[: len(_DIGEST)] != _DIGEST:
        remedy = "Move it away, or give the plan another path: what people read of it stands beside it."
        raise Failure(f"write {_TEXT}", str(beside), "this file is of something else", remedy)


def write(path: Path, plan: Plan) -> None:
    """Replace a file. Raises Failure, with all as it was."""
    private_file.write(path, [document.encode(plan)], _WHAT)


def write_text(path: Path, plan: Plan, lines: Sequence[str]) -> None:
    """Write the plan of a path for people, beside it, unless that is there. Raises Failure, with all as it was."""
    beside, content = text_beside(path), _text(plan, lines)
    if not private_file.has_mode(beside) or private_file.read(beside, _TEXT, "maintenance_plan") != content:
        private_file.write(beside, [content], _TEXT)


def find_text(path: Path, plan: Plan, lines: Sequence[str]) -> Path | None:
    """The path of what `write_text` writes of a plan, if it is there and nobody has changed it since."""
    beside = text_beside(path)
    try:
        return beside if beside.is_file() and beside.read_bytes() == _text(plan, lines) else None
    except OSError:
        return None


def is_same_file(path: str | os.PathLike[str] | None, other: str | os.PathLike[str] | None) -> bool:
    """Whether two paths lead to the same file, whichever links or relative names they have."""
    if not (path and other):
        return False
    try:
        first, second = (private_file.resolved(private_file.expanded(Path(each))) for each in (path, other))
    except OSError:  # which whoever reads or writes it is told of
        return False
    return first == second


def text_beside(path: Path) -> Path:
    """Where the text of a path's plan stands."""
    return path.with_suffix(".txt") if path.suffix == ".json" else Path(f"{path}.txt")


def _text(plan: Plan, lines: Sequence[str]) -> bytes:
    """The content of a plan's text."""
    return "".join(f"{line}\n" for line in (f"{_DIGEST}{document.sha256(plan)}.", *lines)).encode()


def _first_line(path: Path) -> str:
    """Without its end; empty for a file that cannot be read as text."""
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.readline(_LONGEST).rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return ""


def _read(path: Path, *, private: bool) -> Plan:
    content = private_file.read(path, _WHAT, "maintenance_plan", private=private)
    try:
        return document.decode(content)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from error
