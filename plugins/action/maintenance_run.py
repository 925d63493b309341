# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.plugin_utils._cluster_action import ClusterAction, Values
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._invocation import find_invocation


class ActionModule(ClusterAction):
    """Finds the kubeconfig, and tells the module which ansible-playbook it works for."""

    def _work(self, arguments: Values, task_vars: Values) -> Values:
        result = super()._work({**arguments, "_invocation": find_invocation()}, task_vars)
        result.get("invocation", {}).get("module_args", {}).pop("_invocation", None)
        return result
