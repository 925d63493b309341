# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Which invocation of a run a task belongs to: its process of ansible-playbook, the same for all of its tasks."""

from __future__ import annotations

import getpass
import hashlib
import multiprocessing
import os
import platform
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process


def find_invocation() -> dict[str, Any]:
    """As modules take it in `_invocation`."""
    # An action works in a child of ansible-playbook, one for each task and host.
    parent = multiprocessing.parent_process()
    process = Process.of(parent.pid if parent and parent.pid else os.getpid())
    identity = f"{process.place}/{process.pid}/{process.started}"
    return {
        "id": hashlib.sha256(identity.encode()).hexdigest()[:12],
        "user": _user(),
        "host": platform.node(),
        "pid": process.pid,
        "started": process.started,
        "place": process.place,
    }


def invocation_id() -> str:
    return str(find_invocation()["id"])


def _user() -> str:
    """In a container the user's number may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
