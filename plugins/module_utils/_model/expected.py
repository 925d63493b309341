# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all errors have in common by which a pure package says that it cannot work with what it was given.

Or with what is installed: a Python library may be missing that only some uses need.
"""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import sentence


class ExpectedError(Exception):
    """No defect: the text is for people, and says what is wrong. Whoever calls a pure package for a user catches it.

    Caught by this one name no error is forgotten, and none has to be imported with the package that raises it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(sentence(text))


class MissingLibrary(ExpectedError):
    """The Python that runs cannot import `library`; nothing was written. `reason`: as in "to predict placements".

    Which Python that is, and how Ansible chooses it, is told by whoever catches it.
    """

    def __init__(self, library: str, reason: str) -> None:
        super().__init__(f"The Python library {library} is missing, which is needed {reason}.")
        self.library = library
        self.reason = reason
