# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.plugin_utils._cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """Finds the kubeconfig, and shows what the module tells while it runs."""
