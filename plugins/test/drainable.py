# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: drainable
short_description: Test whether nodes can be drained
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Asks whether all VMs of the nodes can be live-migrated away, or follow their policy, and all other pods can leave.
    Filter P(virtops.kubevirt.drain_feasibility#filter) says how, and what is in the way.
  - It runs on the controller.
requirements:
  - numpy >= 1.26
  - jmespath >= 1.0.0, for policies with expressions
options:
  _input:
    description: Name of a node, or names of nodes to drain together.
    type: list
    elements: str
    required: true
  snapshot:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, the path of its file, or lists of objects as
        C(kubectl get -o json) gives their C(items).
      - Prefer the path. Ansible is slow with variables of thousands of objects.
    type: raw
    required: true
extends_documentation_fragment:
  - virtops.kubevirt._policies
positional: _input, snapshot
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - plugin: virtops.kubevirt.drain_feasibility
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: /tmp/cluster.json
  register: cluster

- name: Name the workers that can be drained, each by itself
  ansible.builtin.debug:
    msg: "{{ workers | select('virtops.kubevirt.drainable', cluster) | join(', ') }}"
  vars:
    workers:
      - worker-1
      - worker-2

- name: Check that two nodes can be drained together
  ansible.builtin.assert:
    that: "['worker-1', 'worker-2'] is virtops.kubevirt.drainable(cluster, policies=[{'policy': 'stop'}])"
"""

RETURN = r"""
_value:
  description: Whether they can be drained.
  type: bool
"""

from collections.abc import Callable

from ansible_collections.virtops.kubevirt.plugins.plugin_utils._drain_plan import drain_plan


def drainable(nodes: object, snapshot: object, policies: object = ()) -> bool:
    """See RETURN. Raises AnsibleFilterError."""
    return drain_plan(snapshot, nodes, policies, (), {}, "LowNodeUtilization").feasible


class TestModule:
    def tests(self) -> dict[str, Callable[..., bool]]:
        return {"drainable": drainable}
