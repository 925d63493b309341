# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: placement_lint
short_description: Find rules that cannot work, or that will block maintenance
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Looks through the VMs, pods, nodes and disruption budgets of a snapshot for rules that do not do what they say, VMs
    that nothing can move, and drains that would never end. Each finding says what follows, how to mend it, and where
    that can be said for certain, the patch that does.
  - Migrations are tried in a model of kube-scheduler 1.36. The cluster is not asked.
  - Nodes count as uncordoned, so that a cluster can be looked at during maintenance.
  - The rules are described in the guide on placement_lint of this collection.
  - It runs on the controller.
requirements:
  - numpy >= 1.26
options:
  _input:
    description:
      - What M(virtops.kubevirt.cluster_snapshot) returned, the path of its file, or lists of objects as
        C(kubectl get -o json) gives their C(items).
      - Lists that matter are C(nodes), C(pods), C(namespaces), C(vmis), C(vms), C(vmireplicasets), C(kubevirts),
        C(pdbs), C(pvcs), C(pvs), C(replicasets), C(migrationpolicies) and what else decides where pods may run.
      - Prefer the path. Ansible is slow with variables of thousands of objects.
    type: raw
    required: true
  rules:
    description: Ids of the only rules to apply. All are applied without it.
    type: list
    elements: str
  skip:
    description: Ids of rules to leave out.
    type: list
    elements: str
    default: []
  severity:
    description:
      - The least severe findings to report.
      - V(error) is what maintenance will stop at or what will take a VM down, V(warning) a rule that does not do what
        it says, V(info) everything.
    type: str
    choices:
      - error
      - warning
      - info
    default: info
  window:
    description:
      - How many seconds the drain of a node may take. Rules about time are applied only with it.
    type: int
  schedulers:
    description: Names of schedulers that serve, of which no pod in the snapshot shows it.
    type: list
    elements: str
    default: []
seealso:
  - module: virtops.kubevirt.cluster_snapshot
  - plugin: virtops.kubevirt.feasible_nodes
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: /tmp/cluster.json
  register: cluster

- name: Stop before maintenance that cannot go well
  ansible.builtin.assert:
    that: findings | length == 0
    fail_msg: "{{ findings | map(attribute='consequence') | join(' ') }}"
  vars:
    findings: "{{ cluster | virtops.kubevirt.placement_lint(severity='error', skip=['read-write-once-disk']) }}"

- name: Mend what can be mended
  kubernetes.core.k8s_json_patch:
    api_version: "{{ item.api_version }}"
    kind: "{{ item.kind }}"
    namespace: "{{ item.namespace or omit }}"
    name: "{{ item.name }}"
    patch: "{{ item.patch }}"
  loop: "{{ cluster | virtops.kubevirt.placement_lint | selectattr('patch') }}"
  loop_control:
    label: "{{ item.id }}"
"""

RETURN = r"""
_value:
  description: The findings, the most severe first.
  type: list
  elements: dict
  contains:
    id:
      description: The same for the same fault of the same object, however often one looks.
      type: str
      returned: always
      sample: no-eviction-strategy:VirtualMachine/shop/db#/spec/template/spec/evictionStrategy
    rule:
      description: Id of the rule.
      type: str
      returned: always
      sample: no-eviction-strategy
    severity:
      description: One of V(error), V(warning) and V(info).
      type: str
      returned: always
      sample: error
    api_version:
      description: API version of the object at fault.
      type: str
      returned: always
      sample: kubevirt.io/v1
    kind:
      description: Its kind.
      type: str
      returned: always
      sample: VirtualMachine
    namespace:
      description: Its namespace. Empty for objects without one.
      type: str
      returned: always
      sample: shop
    name:
      description: Its name.
      type: str
      returned: always
      sample: db
    field:
      description: JSON pointer of what is wrong. Empty where it is not one field.
      type: str
      returned: always
      sample: /spec/template/spec/evictionStrategy
    consequence:
      description: What follows, in one sentence.
      type: str
      returned: always
      sample: Without an evictionStrategy, VM shop/db will be shut down by a drain instead of being migrated.
    remedy:
      description: What to do.
      type: str
      returned: always
      sample: Set evictionStrategy to LiveMigrate, here or as the cluster's default.
    patch:
      description:
        - A JSON patch of the object that mends it. Empty where that is for a person to decide.
        - VMs that run get what changes at their next start, or at once where KubeVirt updates them live.
      type: list
      elements: dict
      returned: always
      sample:
        - op: add
          path: /spec/template/spec/evictionStrategy
          value: LiveMigrate
    vmis:
      description: Namespace and name of the running VMs it concerns.
      type: list
      elements: str
      returned: always
      sample:
        - shop/db
"""

from collections.abc import Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot_file import load
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.lint import lint
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.problem import Severity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError, MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import how_to_install

# Of seconds.
_MOST_DIGITS = 9


def placement_lint(
    source: object,
    *,
    rules: object = None,
    skip: object = (),
    severity: str = Severity.INFO.value,
    window: object = None,
    schedulers: object = (),
) -> list[JsonObject]:
    """The findings; see RETURN. Raises AnsibleFilterError."""
    if severity not in {known.value for known in Severity}:
        known = ", ".join(known.value for known in Severity)
        raise AnsibleFilterError(f"There is no severity {severity!r}. Give one of {known}.")
    seconds = None if window is None else _seconds(window)
    chosen = None if rules is None else _strings("rules", rules)
    left_out, serving = _strings("skip", skip), _strings("schedulers", schedulers)
    try:
        found = lint(
            load(source).lists,
            rules=chosen,
            skip=left_out,
            severity=Severity(severity),
            window=seconds,
            schedulers=serving,
        )
    except MissingLibrary as error:
        raise AnsibleFilterError(how_to_install(error)) from None
    except (ExpectedError, Failure) as error:
        # Ansible prints a cause after the message, and here that would be the same sentence again.
        raise AnsibleFilterError(str(error)) from None
    return [finding.to_json() for finding in found]


def _seconds(window: object) -> int:
    text = str(window)
    if not text.isdecimal() or len(text) > _MOST_DIGITS or int(text) == 0:
        raise AnsibleFilterError(f"`window` is a number of seconds, got {window!r}. Give a whole number above 0.")
    return int(text)


def _strings(name: str, given: object) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, (list, tuple)) or not all(isinstance(entry, str) for entry in given):
        raise AnsibleFilterError(f"`{name}` is a list of strings, got {given!r}. Give names, as in ['a', 'b'].")
    return list(given)


class FilterModule:
    def filters(self) -> dict[str, Callable[..., list[JsonObject]]]:
        return {"placement_lint": placement_lint}
