# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python libraries that only some uses need."""

from __future__ import annotations

from importlib.util import find_spec

from ansible.module_utils.basic import missing_required_lib
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import MissingLibrary


def require(library: str, reason: str) -> None:
    """Raises MissingLibrary: before something is begun that might need it in the middle."""
    if find_spec(library) is None:
        raise MissingLibrary(library, reason)


def how_to_install(missing: MissingLibrary) -> str:
    """In Ansible's words, with the Python that lacks it."""
    told: str = missing_required_lib(missing.library, reason=missing.reason)
    return told
