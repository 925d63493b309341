# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this document fragment is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations


class ModuleDocFragment:
    """The option of module_utils/_module/replica_set_arguments.py that words where VMs may run."""

    DOCUMENTATION = r"""
options:
  placement:
    description:
      - Where the VMIs may run, in a few words. It becomes C(affinity), C(tolerations), C(topologySpreadConstraints) and
        C(schedulerName) of the template, which then must not have them itself.
      - Without O(template) it replaces these four in the template that is there.
      - C(per) is V(host), V(zone), V(region), or the key of any other node label.
      - A C(weight) from 1 to 100 makes a rule a preference. A rule without one is required.
    type: dict
    suboptions:
      node_labels:
        description: Labels that nodes must have. All required ones must hold together.
        type: list
        elements: dict
        default: []
        suboptions:
          key:
            description: Key of the label.
            type: str
            required: true
          operator:
            description:
              - By default V(In) with O(placement.node_labels[].values), and V(Exists) without.
              - V(Gt) and V(Lt) compare with one integer.
            type: str
            choices: [In, NotIn, Exists, DoesNotExist, Gt, Lt]
          values:
            description: Values of the label, as text or integers.
            type: list
            elements: raw
          weight:
            description: How much the label is preferred.
            type: int
      keep_apart:
        description:
          - Pods that must not run in the same domain as a VMI. Those of the same replica set, unless
            O(placement.keep_apart[].labels), O(placement.keep_apart[].expressions) or O(placement.keep_apart[].vms)
            name others.
        type: list
        elements: dict
        default: []
        suboptions:
          per:
            description: In which domains.
            type: str
            required: true
          labels:
            description: Labels of the other pods. The pods of VMs carry the labels of their VMI.
            type: dict
          expressions:
            description: Conditions on the labels of the other pods.
            type: list
            elements: dict
            default: []
            suboptions: &expression
              key:
                description: Key of the label.
                type: str
                required: true
              operator:
                description: By default V(In) with values, and V(Exists) without.
                type: str
                choices: [In, NotIn, Exists, DoesNotExist]
              values:
                description: Values of the label.
                type: list
                elements: raw
          vms:
            description: Names of VMIs, in place of labels.
            type: list
            elements: str
            default: []
          namespaces:
            description: Namespaces of the other pods. By default the one of the replica set.
            type: list
            elements: str
            default: []
          weight:
            description: How much the rule is preferred.
            type: int
          ignore_own_pod:
            description:
              - While a VMI migrates, its own old pod is still there. A required rule by zone that counts it makes the
                migration within the zone impossible.
              - So such a rule gets C(mismatchLabelKeys) with C(kubevirt.io/created-by), by which it counts the pods
                of other VMIs only. It needs Kubernetes 1.31 or later.
            type: bool
            default: true
      keep_together:
        description: Pods of which one must run in the same domain as a VMI.
        type: list
        elements: dict
        default: []
        suboptions:
          per:
            description: In which domains.
            type: str
            required: true
          labels:
            description: Labels of the other pods. The pods of VMs carry the labels of their VMI.
            type: dict
          expressions:
            description: Conditions on the labels of the other pods.
            type: list
            elements: dict
            default: []
            suboptions: *expression
          vms:
            description: Names of VMIs, in place of labels.
            type: list
            elements: str
            default: []
          namespaces:
            description: Namespaces of the other pods. By default the one of the replica set.
            type: list
            elements: str
            default: []
          weight:
            description: How much the rule is preferred.
            type: int
      spread:
        description: How evenly the VMIs are spread over domains, as topology spread constraints.
        type: list
        elements: dict
        default: []
        suboptions:
          per:
            description: Over which domains.
            type: str
            required: true
          labels:
            description: Labels of the pods that are counted. By default those of the replica set.
            type: dict
          expressions:
            description: Conditions on the labels of the pods that are counted.
            type: list
            elements: dict
            default: []
            suboptions: *expression
          max_skew:
            description: By how many pods domains may differ.
            type: int
            default: 1
          when_unsatisfiable:
            description: Whether the constraint is a rule or a preference.
            type: str
            choices: [DoNotSchedule, ScheduleAnyway]
            default: DoNotSchedule
          min_domains:
            description: As long as there are fewer domains, the emptiest one counts as empty.
            type: int
          node_affinity_policy:
            description: Whether nodes that the VMIs' node affinity rules out are left out of the count.
            type: str
            choices: [Honor, Ignore]
          node_taints_policy:
            description: Whether nodes with taints that the VMIs do not tolerate are left out of the count.
            type: str
            choices: [Honor, Ignore]
      tolerations:
        description: Taints of nodes that the VMIs tolerate.
        type: list
        elements: dict
        default: []
        suboptions:
          key:
            description: Key of the taint. Without it all taints are meant.
            type: str
          operator:
            description: By default V(Equal).
            type: str
            choices: [Equal, Exists]
          value:
            description: Value of the taint.
            type: str
          effect:
            description: Effect of the taint. Without it all effects are meant.
            type: str
            choices: [NoSchedule, PreferNoSchedule, NoExecute]
          toleration_seconds:
            description: How long a V(NoExecute) taint is tolerated.
            type: int
      scheduler_name:
        description: The scheduler that places the VMIs.
        type: str
      affinity:
        description:
          - The whole C(v1.Affinity) as the API has it, in place of O(placement.node_labels),
            O(placement.keep_apart) and O(placement.keep_together). It is taken as it is.
        type: dict
"""
