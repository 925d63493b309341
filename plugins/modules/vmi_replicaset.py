#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vmi_replicaset
short_description: Run several virtual machines alike, and say where they may run
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Creates, changes and deletes C(VirtualMachineInstanceReplicaSet) objects, and waits until their virtual machine
    instances (VMIs) are ready, or gone.
  - Where the VMIs may run is said in the few words of O(placement), or as the API says it. Both make the same object.
  - Before anything is written, the module foretells where kube-scheduler would put the replicas, and in its words why
    one fits nowhere.
  - A changed template does not reach VMIs that run already. They are listed in RV(outdated).
options:
  state:
    description:
      - With V(present), the replica set is as the task says. What the task does not say stays as it is.
      - With V(absent), it is deleted with all its VMIs.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the replica set.
    type: str
    required: true
  namespace:
    description: Its namespace, which must exist.
    type: str
    required: true
  replicas:
    description:
      - How many VMIs there are to be. A new replica set has one if this is not given.
      - KubeVirt chooses which ones go when there are too many.
    type: int
  paused:
    description:
      - Whether KubeVirt is to leave the number of VMIs as it is. A paused replica set is not waited for.
    type: bool
  selector:
    description:
      - The label selector by which the replica set knows its VMIs. A new one takes the labels of the template if this
        is not given.
    type: dict
  template:
    description:
      - C(metadata) and C(spec) of the VMIs. It replaces the template that is there as a whole.
      - An unknown field is an error.
      - Labels that it does not have are taken from the C(matchLabels) of the selector.
    type: dict
  eviction_strategy:
    description:
      - What becomes of a VMI whose node is drained, for templates with no C(evictionStrategy).
    type: str
    choices: [LiveMigrate, LiveMigrateIfPossible, External, None]
    default: LiveMigrate
  masquerade:
    description:
      - Whether a template that names no network is connected to the pod network by masquerade.
      - KubeVirt would connect it by a bridge, with which it could not be live-migrated.
    type: bool
    default: true
  unplaceable:
    description:
      - What to do if not all replicas could be placed now. With V(fail) nothing is written then.
      - It is asked before a change and when replicas are missing. With a changed template it is also asked whether all
        outdated VMIs could be replaced at once.
      - It needs the Python library C(numpy), and the permission to list pods, nodes and what else the scheduler looks
        at in the whole cluster. Without them V(warn) says so, and V(fail) fails. V(ignore) does without.
    type: str
    choices: [warn, fail, ignore]
    default: warn
  wait:
    description:
      - Whether to wait until as many VMIs as wanted are ready and no other is left, or until all are gone.
    type: bool
    default: true
  wait_timeout:
    description:
      - Seconds the whole task may take. After it the task fails and tells what is left and why.
    type: int
    default: 600
requirements:
  - numpy >= 1.26, to foretell where replicas go
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._placement
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - The API server checks the change, admission included, and keeps nothing. Where replicas would go is foretold.
  diff_mode:
    support: full
    details:
      - The diff shows the specification as the API server stores it, with secrets for the guests hidden.
  idempotent:
    support: full
notes:
  - The permissions to get, create, update and delete replica sets, and to list, watch and create VMIs are needed in
    the namespace. VMIs are only tried out, by dry runs, to learn what KubeVirt would make of the template.
  - Nothing of its options is written to the log of the host on which it runs, as the template may hold secrets.
  - For a VMI that is outdated, delete the VMI; the replica set makes a new one. Live migration does not renew it.
seealso:
  - module: virtops.kubevirt.vmi_migration
  - module: virtops.kubevirt.node_topology
"""

EXAMPLES = r"""
- name: Run three databases on fast nodes, never two in a zone
  virtops.kubevirt.vmi_replicaset:
    namespace: customapp
    name: mssql2016
    replicas: 3
    template:
      metadata:
        labels:
          app: mssql2016
      spec:
        domain:
          cpu:
            cores: 4
          memory:
            guest: 16Gi
          devices: {}
    placement:
      node_labels:
        - key: performance
          values: [high]
      keep_apart:
        - per: zone
    unplaceable: fail

- name: Run three black boxes beside caches, never two in a zone, rather not on fast nodes
  virtops.kubevirt.vmi_replicaset:
    namespace: customapp
    name: blackbox
    replicas: 3
    template: "{{ lookup('ansible.builtin.file', 'blackbox.yml') | from_yaml }}"
    placement:
      node_labels:
        - key: performance
          operator: NotIn
          values: [high]
          weight: 10
      keep_together:
        - per: host
          labels:
            app: cache
      keep_apart:
        - per: zone
  register: blackbox

- name: Show which of them run with an older template
  ansible.builtin.debug:
    msg: "{{ blackbox.outdated | map(attribute='name') }}"

- name: Have one black box more
  virtops.kubevirt.vmi_replicaset:
    namespace: customapp
    name: blackbox
    replicas: 4

- name: Remove the databases, and wait until they are gone
  virtops.kubevirt.vmi_replicaset:
    namespace: customapp
    name: mssql2016
    state: absent
"""

RETURN = r"""
result:
  description:
    - The replica set as the API server stores it, or as it was before it was deleted, with secrets for the guests
      hidden. Empty if there was none to delete.
  returned: success
  type: dict
  sample: {"kind": "VirtualMachineInstanceReplicaSet", "metadata": {"name": "blackbox"}, "spec": {"replicas": 3}}
replicas:
  description: One entry for each replica. In check mode, and without O(wait), as it was before the change.
  returned: with O(state=present), unless nothing was tried
  type: list
  elements: dict
  contains:
    name:
      description: Name of the VMI, empty for one that is not created yet.
      returned: always
      type: str
      sample: blackboxr2wq5
    node:
      description: The node where it runs or would go, empty if none is known.
      returned: always
      type: str
      sample: worker-2
    foretold:
      description: Whether RV(replicas[].node) is where it would go. Of nodes that are equally good it is the first.
      returned: always
      type: bool
      sample: false
    ready:
      description: Whether the VMI is ready.
      returned: always
      type: bool
      sample: true
    message:
      description: Why it is not ready, or fits nowhere, in the words of the scheduler or of KubeVirt.
      returned: always
      type: str
      sample: "0/6 nodes are available: 6 node(s) didn't match pod anti-affinity rules."
outdated:
  description:
    - The VMIs that differ from what the template would make now, or V(null) if the API server admits no new VMI.
  returned: with O(state=present), unless nothing was tried
  type: list
  elements: dict
  contains:
    name:
      description: Name of the VMI.
      returned: always
      type: str
      sample: blackboxr2wq5
    node:
      description: The node where it runs.
      returned: always
      type: str
      sample: worker-2
    successor_node:
      description: Where a new one would go if all outdated ones were replaced at once. Empty if none was asked for.
      returned: always
      type: str
      sample: worker-2
    successor_message:
      description: Why a new one would fit nowhere, in the scheduler's words.
      returned: always
      type: str
      sample: ""
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: write replica set customapp/blackbox
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
      sample: ["in placement.keep_apart[0] per is zoen (is it zone?)"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    object:
      description: On which server it was tried.
      returned: when something was tried
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when something was tried
      type: int
      sample: 422
    reason:
      description:
        - One word for the cause, the server's own where it gave one.
        - V(Unplaceable) if O(unplaceable=fail) refused the task, V(DeadlineExceeded) if O(wait_timeout) was over.
      returned: when something was tried
      type: str
      sample: Unplaceable
    server_message:
      description: The words of the server or of the scheduler.
      returned: when something was tried
      type: str
      sample: connection refused
"""

import contextlib
import time
from dataclasses import replace
from functools import partial

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.replicas import Replicas
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import Client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.replica_sets import (
    ReplicaSet,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import replica_set_arguments as own_arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import replica_set_results as results
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.replica_set_outlook import look_ahead, tell
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.canonical import canonical
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.outlook import all_ready
from ansible_collections.virtops.kubevirt.plugins.module_utils._workloads.replica_set import (
    ReplicaSetRequest,
    wanted_spec,
)


def vmi_replicaset(module: Module) -> JsonObject:
    params = module.params
    deadline = time.monotonic() + max(0, params["wait_timeout"])
    results.conceal(module, params["template"])
    request = own_arguments.read_request(params)
    client = connect(module)
    replica_set = ReplicaSet(client, request.namespace, request.name)
    replicas = Replicas(client, request.namespace, request.name)
    replica_set.read()
    results.conceal(module, replica_set.stored)
    replicas.look()
    if params["state"] == "absent":
        return _remove(module, client, replica_set, replicas, deadline)
    return _apply(module, client, request, replica_set, replicas, deadline)


def _apply(
    module: Module,
    client: Client,
    request: ReplicaSetRequest,
    replica_set: ReplicaSet,
    replicas: Replicas,
    deadline: float,
) -> JsonObject:
    change = partial(wanted_spec, request)
    planned = replica_set.write(change, dry_run=True)
    before, spec = replica_set.stored, planned["spec"]
    changed = before is None or canonical(spec) != canonical(before["spec"])
    view = look_ahead(module, client, replica_set, spec, replicas.vmis, changed=changed)
    result = {**results.result_of(module, before, planned, changed=changed), **results.replicas_of(view)}
    tell(module, client, request, view, result)
    if module.check_mode:
        return result
    if changed:
        written = replica_set.write(change, dry_run=False)
        result = {**results.result_of(module, before, written, changed=True), **results.replicas_of(view)}
    if not module.params["wait"] or spec.get("paused"):
        return result
    reached = replicas.wait(lambda vmis: all_ready(vmis, spec["replicas"]), deadline)
    result |= results.replicas_of(replace(view, vmis=replicas.vmis, expected=(), successors=()))
    if not reached:
        if not replicas.trouble:
            with contextlib.suppress(Failure):  # it would add why virt-controller creates none
                replica_set.read()
        raise results.not_ready(module, client.server, replica_set, replicas, spec["replicas"], result)
    return result


def _remove(module: Module, client: Client, replica_set: ReplicaSet, replicas: Replicas, deadline: float) -> JsonObject:
    before = replica_set.stored
    result = results.result_of(module, before, None, changed=before is not None)
    if before is not None:
        replica_set.delete(dry_run=module.check_mode)
    waits = module.params["wait"] and not module.check_mode
    if waits and not replicas.wait(lambda vmis: not vmis, deadline):
        raise results.not_gone(module, client.server, replica_set.title, replicas, result)
    return result


def main() -> None:
    argument_spec = {**arguments.connection(), **own_arguments.spec()}
    run(vmi_replicaset, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
