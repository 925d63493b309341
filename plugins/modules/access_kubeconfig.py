#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: access_kubeconfig
short_description: Write a kubeconfig or token of a service account into a private file
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Asks the API server for a token of a service account that expires, and writes it into a file that its owner alone
    can read, by itself or in a kubeconfig for the same server.
  - The token is neither returned nor shown, with whatever verbosity.
options:
  state:
    description:
      - V(present) writes the file. V(absent) removes it, without asking the server, if it holds a token of the service
        account, whether by itself or in a kubeconfig of one user; anything else there is refused and stays. Of a link
        the link is removed.
    type: str
    choices: [present, absent]
    default: present
  name:
    description: Name of the service account.
    type: str
    required: true
  namespace:
    description: Its namespace.
    type: str
    required: true
  path:
    description:
      - The file to write or to remove, on the host on which the task runs. An existing file is replaced as a whole.
    type: path
    required: true
  format:
    description: What the file holds.
    type: str
    choices: [kubeconfig, token]
    default: kubeconfig
  expiration:
    description:
      - Seconds for which the token is good, at least 600. The API server may give less or more.
      - A file with a token that is good for half of that still stays as it is, unless it is good for longer than that.
        Where the API server gives less than half of it, each task makes a new one; ask for what it gives then.
    type: int
    default: 86400
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
      - No token is asked for, and no file written.
  diff_mode:
    support: none
    details:
      - It would show a secret.
  idempotent:
    support: full
    details:
      - When half of its time is over, a token is replaced.
notes:
  - Role P(virtops.kubevirt.access#role) makes the account as well.
  - The rights to get C(serviceaccounts) and to create C(serviceaccounts/token) in O(namespace) are needed.
seealso:
  - module: virtops.kubevirt.access_review
"""

EXAMPLES = r"""
- name: Let the maintenance tonight use an account of its own
  virtops.kubevirt.access_kubeconfig:
    namespace: virtops-kubevirt
    name: maintenance
    path: maintenance.kubeconfig
    expiration: 28800

- name: Remove its credentials
  virtops.kubevirt.access_kubeconfig:
    state: absent
    namespace: virtops-kubevirt
    name: maintenance
    path: maintenance.kubeconfig
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /var/lib/awx/maintenance.kubeconfig
expires_at:
  description: When the token expires, in UTC. V(null) if there is none yet in check mode, and if it was removed.
  returned: success
  type: str
  sample: "2026-11-22T20:00:00Z"
error:
  description: What went wrong, for programs. The same is in C(msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: make a token
    object:
      description: On which server or file it was tried.
      returned: when something was tried
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: when something was tried
      type: int
      sample: 404
    reason:
      description: One word for the cause, the server's own where it gave one.
      returned: when something was tried
      type: str
      sample: NotFound
    server_message:
      description: The words of the server or of the operating system, or what was found.
      returned: when something was tried
      type: str
      sample: there is no service account virtops-kubevirt/maintenance
    problems:
      description: What is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["expiration is 60, but Kubernetes gives no token for less than 600 seconds"]
    problems_left_out:
      description: How many problems there are beside the first, which alone stand in C(problems).
      returned: when there are many
      type: int
      sample: 50
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Make it first, as role access does.
"""


from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments, kubeconfig_task
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def access_kubeconfig(module: Module) -> JsonObject:
    arguments.require_positive(module.params, "request_timeout")
    kubeconfig_task.check(module.params)
    if module.params["state"] == "absent":
        return kubeconfig_task.remove(module)
    return kubeconfig_task.write(module, connect(module))


def main() -> None:
    argument_spec = {**arguments.connection(), **kubeconfig_task.spec()}
    run(access_kubeconfig, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
