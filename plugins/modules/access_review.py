#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: access_review
short_description: See that a user has all the rights that roles of this collection need
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Asks the API server for each right whether the user of the task has it, and fails with all that are missing, what
    each is for, and what grants them.
  - The roles of this collection do so before they touch anything, and remember which cluster it was. Do it by yourself
    to prove an account that you have made.
options:
  roles:
    description:
      - What the user is to be able to do. V(planning) is to foretell a run, V(rolling_maintenance) to carry it out and
        to give it up, and the others are the roles of these names.
    type: list
    elements: str
    choices: [planning, plan_maintenance, drain, uncordon, live_migrate, rebalance, rolling_maintenance]
    required: true
  lease_namespace:
    description: Namespace of the Leases.
    type: str
    default: medik8s-leases
  wait_timeout:
    description:
      - Seconds for which an API server that is busy or away is waited for. Two minutes if it is not given, and in check
        mode.
    type: int
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
      - Nothing is changed anyway.
  diff_mode:
    support: none
  idempotent:
    support: full
notes:
  - All rights, and what each is for, stand in
    R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights).
  - Role P(virtops.kubevirt.access#role) makes accounts that have them.
  - Kubernetes lets every user who is logged in ask for the user's own rights.
seealso:
  - module: virtops.kubevirt.access_kubeconfig
"""

EXAMPLES = r"""
- name: See that a token is good for the maintenance tonight
  virtops.kubevirt.access_review:
    roles: [rolling_maintenance]
    kubeconfig: maintenance.kubeconfig
"""

RETURN = r"""
reviewed:
  description: How many rights there are, all of which the user has.
  returned: success
  type: int
  sample: 56
cluster_uid:
  description: >-
    UID of namespace C(kube-system) in the cluster that was asked. Tasks that are given it do nothing in another one.
  returned: success
  type: str
  sample: 4c6a4d66-4b7b-4a36-9d5c-1f0f7c8f4f0a
error:
  description: What went wrong, for programs. The same is in C(msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: act as rolling_maintenance
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
      description: One word for the cause. V(RightsMissing) tells that rights are missing.
      returned: when something was tried
      type: str
      sample: RightsMissing
    server_message:
      description: All that is missing, or the words of the server.
      returned: when something was tried
      type: str
      sample: the user lacks the rights to patch nodes (to cordon it in its owner's name)
    missing:
      description: The rights that are missing.
      returned: when rights are missing
      type: list
      elements: dict
      contains:
        verb: {description: The verb., returned: always, type: str, sample: delete}
        api_group: {description: Group of the API., returned: always, type: str, sample: coordination.k8s.io}
        resource: {description: "The resource, with its subresource.", returned: always, type: str, sample: leases}
        name: {description: "The one object, empty for all.", returned: always, type: str, sample: ""}
        namespace: {description: "The one namespace, empty for all.", returned: always, type: str,
                    sample: medik8s-leases}
        why: {description: What it is for., returned: always, type: list, elements: str, sample: [release the run]}
    problems:
      description: What is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["request_timeout is 0"]
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: >-
        Nothing was touched. Let an administrator run `ansible-playbook virtops.kubevirt.access -e access_roles=drain
        -e access_path=maintenance.kubeconfig`, with all that the account is for in access_roles, as it has no other
        rights then; the file is its kubeconfig. Or bind ClusterRole and Role virtops.kubevirt:drain to this user.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.identity import cluster_uid
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, rights
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def access_review(module: Module) -> JsonObject:
    arguments.require_positive(module.params, "request_timeout")
    client = connect(module)
    reviewed = rights.require_for_roles(client, module.params["roles"], module.params["lease_namespace"])
    return {"changed": False, "reviewed": reviewed, "cluster_uid": cluster_uid(client)}


def main() -> None:
    argument_spec = {**arguments.connection(), **rights.spec()}
    run(access_review, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
