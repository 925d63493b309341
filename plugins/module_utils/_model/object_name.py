# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no object of Kubernetes can be named, because a path of its API would then mean something else.

Follows IsValidPathSegmentName in k8s.io/apimachinery/pkg/api/validation/path/name.go. To quote such a name is not
enough: the server looks at the path after it has taken the quotes away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def name_problem(name: str) -> str | None:
    """A clause that follows what the name is of; None if an object may be named so."""
    if not name.strip():
        return "is empty"
    if name in (".", "..") or "/" in name or "%" in name:
        return f"is {name!r}, but no object can be named so"
    return None


def name_problems(params: Mapping[str, Any], *options: str) -> Iterator[str]:
    """One clause for each of these options that names no object."""
    found = ((option, name_problem(params[option])) for option in options)
    yield from (f"{option} {problem}" for option, problem in found if problem)
