# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What the controller does for a module that talks to a cluster: it finds the kubeconfig, and listens meanwhile.

A redirect to kubernetes.core's action would do the same, but with a redirect Ansible also takes the module for
kubernetes.core's: `module_defaults` of ours would reach users' tasks with `kubernetes.core.k8s_info`.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError, AnsibleFileNotFound
from ansible.plugins.action import ActionBase
from ansible_collections.kubernetes.core.plugins.action.k8s_info import ActionModule as KubernetesAction
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _kubeconfig, _progress

Values = dict[str, Any]


class ClusterAction(KubernetesAction):  # type: ignore[misc]  # kubernetes.core is published without types
    """kubernetes.core's action finds a kubeconfig among a role's files and decrypts a vaulted one; the rest is ours."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: Values | None = None) -> Values:
        # Not the parent's, which gives arguments such as `template` a meaning of its own.
        result: Values = ActionBase.run(self, tmp, task_vars)
        arguments = copy.deepcopy(self._task.args)
        self._find_kubeconfig(arguments)
        try:
            result.update(self._work(arguments, task_vars or {}))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        # Not with the parent's invocation of a module that told none: it has all options, credentials as well.
        return result

    def _work(self, arguments: Values, task_vars: Values) -> Values:
        """The module's result; what it tells is shown as it comes."""
        with _progress.screen() as screen, _progress.listening(screen.show) as path:
            given = {**arguments, "_progress": path}
            result: Values = self._execute_module(module_name=self._task.action, module_args=given, task_vars=task_vars)
        result.get("invocation", {}).get("module_args", {}).pop("_progress", None)
        return result

    def _find_kubeconfig(self, arguments: Values) -> None:
        try:
            kubeconfig = _kubeconfig.meant(arguments.pop("kubeconfig", None))
        except InvalidRequest as error:
            raise AnsibleActionFail(str(error)) from None
        if not kubeconfig:
            return
        arguments["kubeconfig"] = kubeconfig
        try:
            self.get_kubeconfig(kubeconfig, self._connection.transport != "local", arguments)
        except AnsibleFileNotFound:
            raise AnsibleActionFail(
                f"Cannot read the kubeconfig {brief(kubeconfig)}: it is not there, nor among the files of the role or "
                "playbook. Correct the path."
            ) from None
        except AnsibleError as error:
            raise AnsibleActionFail(f"Cannot read the kubeconfig {brief(kubeconfig)}: {brief(error)}") from None

    def _find_needle(self, dirname: str, needle: str) -> str:
        """Last of all in the folder in which ansible-playbook runs: the collection's playbooks stand elsewhere."""
        try:
            return str(super()._find_needle(dirname, needle))
        except AnsibleFileNotFound:
            path = Path(needle).absolute()
            if not _kubeconfig.is_file(path):
                raise
            return str(path)
