# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Run a module in rounds and show its progress while it works; see module_utils/_module/rounds.py for the other side.

Progress goes to stderr: on stdout it would break callbacks that print JSON.
"""

from __future__ import annotations

import copy
import time
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.kubernetes.core.plugins.action.k8s_info import ActionModule as KubernetesAction

display = Display()

# A round ends with news; without any it is a sign of life to the connection, not to people.
_ROUND_SECONDS = 20.0

Values = dict[str, Any]


class RoundsAction(KubernetesAction):  # type: ignore[misc]  # kubernetes.core is published without types
    """kubernetes.core's action finds a kubeconfig among a role's files and decrypts a vaulted one; this one repeats."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Values | None = None) -> Values:
        # Not the parent's, which would execute the module.
        result: Values = ActionBase.run(self, tmp, task_vars)
        arguments = copy.deepcopy(self._task.args)
        self._find_kubeconfig(arguments)
        started = time.monotonic()
        try:
            result.update(self._rounds(arguments, task_vars or {}, started))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        ensured: Values = self._ensure_invocation(result)
        return ensured

    def _find_kubeconfig(self, arguments: Values) -> None:
        kubeconfig = arguments.get("kubeconfig")
        if not kubeconfig:
            return
        try:
            self.get_kubeconfig(kubeconfig, self._connection.transport != "local", arguments)
        except AnsibleError as error:
            raise AnsibleActionFail(f"Cannot read the kubeconfig: {error}") from error

    def _rounds(self, arguments: Values, task_vars: Values, started: float) -> Values:
        """The result of the last round."""
        state: Any = None
        while True:
            given = {"elapsed": time.monotonic() - started, "seconds": _ROUND_SECONDS, "state": state}
            result: Values = self._execute_module(
                module_name=self._task.action, module_args={**arguments, "_round": given}, task_vars=task_vars
            )
            for line in result.pop("_progress", ()):
                display.display(line, stderr=True)
            state = result.pop("_round", None)
            invocation = result.get("invocation", {}).get("module_args", {})
            invocation.pop("_round", None)
            if state is None:
                return result
