#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_readiness
short_description: See that a node is fit for virtual machines, and wait until it is
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - A node is fit when it is Ready, virt-handler on it has given a sign of life not long ago, its label
    C(kubevirt.io/schedulable) is V(true), and there is no virtual machine on it that KubeVirt wants to leave it.
  - After a reboot that must not be taken for granted, as the node first looks by what was said before it. With
    O(boot_id) a sign of life counts only if it is of after the reboot, which can take about two minutes.
  - Nothing is changed. The module fails unless the node is fit, and tells what keeps it.
options:
  name:
    description: Name of the node.
    type: str
    required: true
  boot_id:
    description:
      - The boot ID that the node had before it may have rebooted, such as
        RV(virtops.kubevirt.node_drain#module:boot_id). Without it the node counts as one that has not rebooted.
    type: str
  heartbeat:
    description:
      - Virt-handler's last sign of life before that, such as RV(virtops.kubevirt.node_drain#module:heartbeat).
    type: str
  rebooted:
    description:
      - Whether the node has to have rebooted since it had O(boot_id). In check mode it need not.
    type: bool
    default: false
  heartbeat_age:
    description: Seconds that virt-handler's last sign of life may be old. It gives one about every one to two minutes.
    type: int
    default: 180
  evacuations:
    description:
      - What about virtual machines on the node that KubeVirt is evacuating, as somebody has evicted their pods.
      - V(wait) takes the node for fit when they have left it, or their evacuation was withdrawn.
      - V(ignore) only names them in RV(leaving).
    type: str
    choices: [wait, ignore]
    default: wait
  wait:
    description:
      - Whether to wait until the node is fit, instead of failing at once.
      - What waiting does not mend ends it at once, such as a node that is not there, or a user who may not look at it.
        An API server that is away is waited for.
      - In check mode nothing is waited for.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait altogether.
    type: int
    default: 120
  wait_sleep:
    description: Seconds between two looks.
    type: int
    default: 5
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - virtops.kubevirt._run.cluster
  - virtops.kubevirt._progress
  - virtops.kubevirt._attributes
  - virtops.kubevirt._attributes.action_group
attributes:
  check_mode:
    support: full
    details:
      - It looks once.
  diff_mode:
    support: none
    details:
      - Nothing is changed.
  idempotent:
    support: full
notes:
  - The user needs the rights to get nodes and to list virtual machine instances, see
    R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights).
  - Where the module runs on the controller, as with C(delegate_to=localhost), what is waited for is shown on stderr
    every ten seconds, as far as it has changed.
  - Ages are by the clock of the host on which the module runs.
seealso:
  - module: virtops.kubevirt.node_maintenance
  - module: virtops.kubevirt.node_drain
  - module: kubernetes.core.k8s_info
"""

EXAMPLES = r"""
- name: See that a node is fit for virtual machines
  virtops.kubevirt.node_readiness:
    name: worker-2

- name: Empty a node
  virtops.kubevirt.node_drain:
    name: worker-2
    owner: kernel-update
    cordon: true
  register: drained

- name: Reboot it
  ansible.builtin.reboot:
  delegate_to: worker-2

- name: Wait until it has rebooted and is fit again
  virtops.kubevirt.node_readiness:
    name: worker-2
    boot_id: "{{ drained.boot_id }}"
    heartbeat: "{{ drained.heartbeat }}"
    rebooted: true
    wait: true
    wait_timeout: 900

- name: Give it back
  virtops.kubevirt.node_maintenance:
    name: worker-2
    owner: kernel-update
    state: uncordoned
"""

RETURN = r"""
obstacles:
  description:
    - What keeps virtual machines from the node and what to do about it, a clause each. Empty if it is fit.
    - That it is not there, that the user may not look at it, and that the API server does not answer are told so, too.
  returned: always, unless the task cannot be meant so or fails for another reason
  type: list
  elements: str
  sample: ["it is not Ready: see to its kubelet"]
leaving:
  description: Virtual machines on the node that KubeVirt wants to leave it. They count once there are no RV(obstacles).
  returned: when there are no obstacles
  type: list
  elements: dict
  contains:
    namespace:
      description: Namespace of the virtual machine instance.
      returned: always
      type: str
      sample: shop
    name:
      description: Its name.
      returned: always
      type: str
      sample: web-1
boot_id:
  description: The node's boot ID, as it says it itself.
  returned: when the node was read
  type: str
  sample: 41e9e1b5-8c33-4a8c-b0d2-3f8b7a8e5a11
heartbeat:
  description: Virt-handler's last sign of life, as the node has it. Empty if there is none.
  returned: when the node was read
  type: str
  sample: "2026-11-21T14:49:02Z"
error:
  description: What went wrong, for programs. The same is in RV(ignore:msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: find node worker-2 fit for virtual machines
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Remove the cause and run the task again.
    problems:
      description: All that is wrong with the task, or what keeps virtual machines from the node.
      returned: when there is such a thing
      type: list
      elements: str
      sample: ["it is not Ready: see to its kubelet"]
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
      description: HTTP status of the API server's last answer, if that was none.
      returned: when something was tried
      type: int
      sample: 403
    reason:
      description:
        - One word for the cause, the server's own where it gave one. V(NotFit) if the node was looked at once,
          V(DeadlineExceeded) if O(wait_timeout) was over before it was fit, V(OtherCluster) if O(cluster_uid) is
          another's.
      returned: when something was tried
      type: str
      sample: DeadlineExceeded
    server_message:
      description: What was found, or the words of the server or of the operating system.
      returned: when something was tried
      type: str
      sample: "after 900 s it is not Ready: see to its kubelet"
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, readiness_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def node_readiness(module: Module) -> JsonObject:
    return readiness_task.Readiness(module).result()


def main() -> None:
    argument_spec = {**arguments.connection(), **arguments.wait(), **readiness_task.spec()}
    run(node_readiness, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
