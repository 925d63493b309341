# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.secrets import HIDDEN, without_secrets
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._cluster_action import ClusterAction, Values


class ActionModule(ClusterAction):
    """Finds the kubeconfig, and keeps secrets in the template, such as passwords in cloud-init data, from being shown.

    AnsibleModule writes all options to the log of the host on which it runs, and returns them when it refuses one,
    before a module can say what in them is secret. `no_log` would hide the results as well.
    """

    def run(self, tmp: str | None = None, task_vars: Values | None = None) -> Values:
        result = super().run(tmp, task_vars)
        shown = result.get("invocation", {}).get("module_args", {})
        if template := shown.get("template"):
            shown["template"] = without_secrets(template) if isinstance(template, dict) else HIDDEN
        return result

    def _work(self, arguments: Values, task_vars: Values) -> Values:
        return super()._work(arguments, {**task_vars, "ansible_no_target_syslog": True})
