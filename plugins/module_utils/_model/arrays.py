# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one door to NumPy: `np`, and the names of the array types used by the pure packages.

NumPy may be missing where Ansible only looks at a file (documentation, sanity tests), so its absence is no error
before an array is needed; entries that compute call `require_numpy` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import MissingLibrary

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    try:
        import numpy as np
    except ImportError:
        np = None

BoolArray: TypeAlias = "npt.NDArray[np.bool_]"
IntArray: TypeAlias = "npt.NDArray[np.int64]"
IdArray: TypeAlias = "npt.NDArray[np.int32]"
FloatArray: TypeAlias = "npt.NDArray[np.float64]"

__all__ = ["BoolArray", "FloatArray", "IdArray", "IntArray", "np", "require_numpy"]


def require_numpy() -> None:
    """Raise `MissingLibrary` where NumPy is missing."""
    if np is None:
        raise MissingLibrary("numpy", "to predict placements")
