#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: access_account
short_description: Make a service account with the rights that maintenance takes, or remove it
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Makes a service account, its namespace, the ClusterRoles and Roles of O(roles) with their bindings, and the
    namespace of the Leases. The account has the rights of these roles then, and of no others of this collection. Their
    bindings are removed.
  - R(The guide to rights,ansible_collections.virtops.kubevirt.docsite.rights) lists them all, with what each is for.
options:
  state:
    description:
      - V(present) makes the account, and mends what somebody has changed of it. What Kubernetes lets nobody mend is
        refused, a ClusterRole with an C(aggregationRule) and a binding to another role.
      - V(absent) removes it with its bindings, and those of the collection's ClusterRoles and Roles that nobody else is
        bound to, in whichever namespace. Namespaces stay.
      - Its bindings are those of its name, wherever they stand. With V(present) those that it is to have are for it
        alone, and others whom somebody has bound in one of them lose what they have by it.
      - One that it is not to have is removed. From one in which somebody has bound others as well, only the account is
        taken. With V(absent) that holds for all of them.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the service account.
    type: str
    required: true
  namespace:
    description: Its namespace, which is made if it is missing.
    type: str
    required: true
  roles:
    description:
      - What the account is for. V(planning) is to foretell a run, V(rolling_maintenance) to carry it out and to give it
        up, and the others are the roles of these names.
      - Required if O(state=present).
    type: list
    elements: str
    choices: [planning, plan_maintenance, drain, uncordon, live_migrate, rebalance, rolling_maintenance]
  lease_namespace:
    description:
      - Namespace of the Leases, which is made if it is missing. The default is that of medik8s' operators.
      - In another one that it was before the account has no rights any more.
    type: str
    default: medik8s-leases
  kubevirt_role:
    description:
      - Whether the account is bound to KubeVirt's own ClusterRole for whoever migrates VMs, C(kubevirt.io:migrate), if
        one of O(roles) migrates. What a later KubeVirt wants of such users is granted with it.
    type: bool
    default: true
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
      - The API server checks all that would be written, but for what would stand in a namespace, or be bound to a role,
        that the task itself would make.
  diff_mode:
    support: full
  idempotent:
    support: full
notes:
  - It takes the rights of an administrator. Kubernetes lets nobody grant what he has not got himself, unless he may
    C(escalate) and C(bind) roles. It lists all bindings of the cluster, and with O(state=absent) all roles as well.
  - Role P(virtops.kubevirt.access#role) makes credentials of the account as well.
seealso:
  - module: virtops.kubevirt.access_kubeconfig
  - module: virtops.kubevirt.access_review
"""

EXAMPLES = r"""
- name: Make an account that only foretells runs
  virtops.kubevirt.access_account:
    namespace: virtops-kubevirt
    name: planner
    roles: [planning]

- name: Remove it
  virtops.kubevirt.access_account:
    namespace: virtops-kubevirt
    name: planner
    state: absent
"""

RETURN = r"""
objects:
  description: What was written or removed, in this order, or would be in check mode.
  returned: when it came to that
  type: list
  elements: dict
  contains:
    kind: {description: The kind., returned: always, type: str, sample: ClusterRole}
    namespace: {description: "The namespace, empty for a kind without.", returned: always, type: str, sample: ""}
    name: {description: The name., returned: always, type: str, sample: "virtops.kubevirt:planning"}
    change: {description: "V(created), V(changed) or V(removed).", returned: always, type: str, sample: created}
error:
  description: What went wrong, for programs. The same is in C(msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: 'write ClusterRole virtops.kubevirt:drain'
    object:
      description: On which server it was tried.
      returned: when something was tried
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when something was tried
      type: int
      sample: 403
    reason:
      description: One word for the cause, the server's own where it gave one.
      returned: when something was tried
      type: str
      sample: Forbidden
    server_message:
      description: The words of the server.
      returned: when something was tried
      type: str
      sample: 'the API server answered 403, clusterroles is forbidden'
    problems:
      description: What is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["name is empty"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Let an administrator do it.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import account_task, arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def access_account(module: Module) -> JsonObject:
    arguments.require_positive(module.params, "request_timeout")
    account = account_task.account(module.params)
    return account_task.write(module, connect(module), account)


def main() -> None:
    argument_spec = {**arguments.connection(), **account_task.spec()}
    required = [("state", "present", ["roles"])]
    run(access_account, argument_spec=argument_spec, supports_check_mode=True, required_if=required)


if __name__ == "__main__":
    main()
