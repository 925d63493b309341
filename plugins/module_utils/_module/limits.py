# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of options that Ansible's argument spec cannot express."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.mistake import Mistake


def require_positive(params: Mapping[str, Any], *names: str) -> None:
    """Raise Mistake unless each of the numbers is at least 1."""
    problems = [f"{name} is {params[name]}" for name in names if params[name] < 1]
    if problems:
        raise Mistake("read the options of the task", problems, "Give a number of at least 1.")
