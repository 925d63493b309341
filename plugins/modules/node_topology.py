#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_topology
short_description: Label nodes by where they are and what they are for
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Sets the labels by which rules for virtual machines and pods tell nodes apart, such as zone and region, for lists of
    nodes or by rules that derive them from the Node objects.
  - Everything is checked before anything is written. An unknown node, a key or value that cannot be a label, and
    wishes that contradict each other are reported together, and no node is touched.
  - Nodes that lack a label which others carry are reported, as a rule like "never two in a zone" does not hold for
    them.
options:
  topology:
    description:
      - Labels for lists of nodes. A node may stand in several items as long as they do not contradict each other.
    type: list
    elements: dict
    default: []
    suboptions:
      nodes:
        description: Names of nodes.
        type: list
        elements: str
        required: true
      zone:
        description: The zone, label C(topology.kubernetes.io/zone).
        type: str
      region:
        description: The region, label C(topology.kubernetes.io/region).
        type: str
      labels:
        description:
          - Further labels. Values are text, so quote numbers and words like V("true").
          - V(null) removes a label from these nodes.
        type: dict
  rules:
    description:
      - Labels that JMESPath expressions derive from the Node objects, as C(kubectl get node -o json) shows them.
      - An expression that gives null wishes for nothing. One that gives anything but text is an error.
      - Rules see the nodes as they are before the task, and have the same weight as the lists of nodes.
    type: list
    elements: dict
    default: []
    suboptions:
      condition:
        description: Expression that says for which nodes the rule is. Without it the rule is for all.
        type: str
      zone:
        description: Expression that gives the zone, label C(topology.kubernetes.io/zone).
        type: str
      region:
        description: Expression that gives the region, label C(topology.kubernetes.io/region).
        type: str
      labels:
        description: Expressions by the key of the label that each gives.
        type: dict
  purge:
    description:
      - Whether to remove the keys that this task names from all nodes of the cluster for which it does not wish them.
      - Other keys are never touched.
    type: bool
    default: false
  replace_deprecated:
    description:
      - Whether to remove the deprecated keys C(failure-domain.beta.kubernetes.io/zone) and
        C(failure-domain.beta.kubernetes.io/region) from all nodes.
      - Their values go on under the keys of today, unless a node carries those already or the task decides on them.
      - Pods, virtual machines and volumes that still select nodes by a deprecated key no longer fit these nodes.
    type: bool
    default: false
requirements:
  - jmespath >= 1.0.0, for rules
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - The API server checks each change, permissions and admission included, and keeps none.
  diff_mode:
    support: full
    details:
      - The diff shows the labels that change, by node.
  idempotent:
    support: full
notes:
  - The permissions to list and to patch nodes are needed, and nothing else.
  - Labels that the kubelet or KubeVirt set by themselves, such as C(kubernetes.io/hostname), are refused.
  - Running pods and virtual machines stay where they are, whatever their node's labels become.
seealso:
  - module: kubernetes.core.k8s
"""

EXAMPLES = r"""
- name: Say where the nodes are
  virtops.kubevirt.node_topology:
    topology:
      - nodes: [kni-worker, kni-worker2, kni-worker3, kni-worker4, kni-worker5, kni-worker6]
        region: iberia
      - nodes: [kni-worker, kni-worker2]
        zone: scu
      - nodes: [kni-worker3, kni-worker4]
        zone: bcn
      - nodes: [kni-worker5, kni-worker6]
        zone: sab
      - nodes: [kni-worker2, kni-worker4, kni-worker6]
        labels:
          performance: high
    purge: true

- name: Derive labels from what the nodes say of themselves
  virtops.kubevirt.node_topology:
    rules:
      # The machines of one site are annotated with their zone.
      - condition: starts_with(metadata.name, 'kni-')
        zone: metadata.annotations."example.com/zone"
        region: "'iberia'"
      # A label that says how the node boots, from the version of its operating system.
      - condition: contains(status.nodeInfo.osImage, 'CoreOS')
        labels:
          example.com/image: "'coreos'"

- name: Give up deprecated keys, and take a label from one node
  virtops.kubevirt.node_topology:
    topology:
      - nodes: [kni-worker6]
        labels:
          performance: null
    replace_deprecated: true
"""

RETURN = r"""
changes:
  description: What was written, or in check mode would be. Nodes without a change are left out.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      returned: success
      type: str
      sample: kni-worker
    labels:
      description: The new values by key, V(null) for a label that was removed.
      returned: success
      type: dict
      sample: {"topology.kubernetes.io/zone": "scu"}
  sample: [{"node": "kni-worker", "labels": {"topology.kubernetes.io/zone": "scu"}}]
incomplete:
  description:
    - By key, the nodes that after the changes lack it although others carry it. The keys looked at are zone, region,
      host name and all that the task names. A node from which the task removes a key on purpose is not among them.
  returned: success
  type: dict
  sample: {"topology.kubernetes.io/zone": ["kni-control-plane"]}
deprecated:
  description: Labels with deprecated keys that were found before the changes.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      returned: success
      type: str
      sample: kni-worker
    key:
      description: The deprecated key.
      returned: success
      type: str
      sample: failure-domain.beta.kubernetes.io/zone
    value:
      description: Its value on the node.
      returned: success
      type: str
      sample: scu
    replacement:
      description: What the key is called now.
      returned: success
      type: str
      sample: topology.kubernetes.io/zone
  sample: []
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: label the nodes
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Correct the task; nothing was written.
    problems:
      description: All that is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["in topology[0] node kni-wroker does not exist (is it kni-worker?)"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    object:
      description: On which server it was tried.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when the cluster did not do what it was asked for
      type: int
      sample: 403
    reason:
      description: One word for the cause, the server's own where it gave one.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: Forbidden
    server_message:
      description: The words of the server or of the operating system.
      returned: when the cluster did not do what it was asked for
      type: str
      sample: connection refused
    written:
      description: Nodes that were labelled before writing failed.
      returned: when writing failed
      type: list
      elements: str
      sample: [kni-worker]
"""

from dataclasses import asdict

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import (
    label_nodes,
    read_nodes,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.arguments import ArgumentSpec
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run
from ansible_collections.virtops.kubevirt.plugins.module_utils._nodes.topology import collect, plan, warnings


def node_topology(module: Module) -> JsonObject:
    params = module.params
    client = connect(module)
    nodes = read_nodes(client)
    wishes = collect(nodes, params["topology"], params["rules"])
    planned = plan(nodes, wishes, purge=params["purge"], replace_deprecated=params["replace_deprecated"])
    labels = {change.node: change.labels for change in planned.changes}
    label_nodes(client, nodes, labels, dry_run=module.check_mode)
    for warning in warnings(planned, replaced=params["replace_deprecated"]):
        module.warn(warning)
    result: JsonObject = {
        "changed": bool(planned.changes),
        "changes": [{"node": change.node, "labels": dict(change.labels)} for change in planned.changes],
        "incomplete": dict(planned.incomplete),
        "deprecated": [asdict(deprecation) for deprecation in planned.deprecated],
    }
    if module._diff:
        result["diff"] = {
            "before": {change.node: dict(change.before) for change in planned.changes},
            "after": {change.node: change.after for change in planned.changes},
        }
    return result


def main() -> None:
    labels: ArgumentSpec = {"zone": {"type": "str"}, "region": {"type": "str"}, "labels": {"type": "dict"}}
    nodes: ArgumentSpec = {"type": "list", "elements": "str", "required": True}
    argument_spec = {
        **arguments.connection(),
        "topology": {"type": "list", "elements": "dict", "default": [], "options": {"nodes": nodes, **labels}},
        "rules": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {"condition": {"type": "str"}, **labels},
        },
        "purge": {"type": "bool", "default": False},
        "replace_deprecated": {"type": "bool", "default": False},
    }
    run(node_topology, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
