# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exception of what cannot be computed because a Python library is missing that only some uses need."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError


class MissingLibrary(ExpectedError):
    """The Python that runs cannot import `library`; nothing was written. `reason`: as in "to predict placements".

    Which Python that is, and how Ansible chooses it, is told by whoever catches it.
    """

    def __init__(self, library: str, reason: str) -> None:
        super().__init__(f"The Python library {library} is missing, which is needed {reason}.")
        self.library = library
        self.reason = reason
