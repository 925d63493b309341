# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python libraries that only some uses of a module need."""

from __future__ import annotations

from importlib.util import find_spec

from ansible.module_utils.basic import missing_required_lib
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module


def require(module: Module, library: str, reason: str) -> None:
    """Fail with how to install a library that is missing. `reason`: as in "for rules"."""
    if find_spec(library) is None:
        module.fail_json(msg=missing_required_lib(library, reason=reason))
