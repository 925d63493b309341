# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, change, write on the version that was read, and all of it again if somebody else was quicker.

Follows RetryOnConflict in k8s.io/client-go, util/retry. A conflict may be with this very task: the answer to a write
was lost, and the server has added to what was written. So a change has to be right when it is made a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure

_Current = TypeVar("_Current")
_Result = TypeVar("_Result")

# Kubelets, controllers and holders of Leases write every few seconds; to lose so often in a row is no coincidence.
ATTEMPTS = 5


def retry_on_conflict(attempt: Callable[[], _Result]) -> _Result:
    """What the attempt returns, which reads by itself what it writes on. Status 409 is raised only by the last one."""
    return retry_on_newest(None, lambda _found: attempt(), lambda _conflict: None)


def retry_on_newest(
    found: _Current, write: Callable[[_Current], _Result], read: Callable[[Failure], _Current]
) -> _Result:
    """The same for what was read before. read: what is there now; it gets the conflict, and may raise it for good."""
    for _number in range(ATTEMPTS - 1):
        try:
            return write(found)
        except Failure as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            found = read(error)
    return write(found)
