# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import getpass
import hashlib
import multiprocessing
import os
import platform

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._cluster_action import ClusterAction, Values


class ActionModule(ClusterAction):
    """Finds the kubeconfig, and tells the module which ansible-playbook it works for."""

    def _work(self, arguments: Values, task_vars: Values) -> Values:
        result = super()._work({**arguments, "_invocation": _invocation()}, task_vars)
        result.get("invocation", {}).get("module_args", {}).pop("_invocation", None)
        return result


def _invocation() -> Values:
    """The process of ansible-playbook, which is the same for all tasks of a run: as the module takes it."""
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


def _user() -> str:
    """In a container the user's number may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
