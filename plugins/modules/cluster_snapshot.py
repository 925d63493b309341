#!/usr/bin/python
# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_snapshot
short_description: Read what decides the placement of virtual machines into a file
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Reads nodes, pods, virtual machines, storage, budgets, quotas and the configuration of KubeVirt from a cluster,
    and writes them to one JSON file. The other modules, filters and tests of this collection work on that file.
  - Of each object only the fields that placement needs are kept. Environment variables, secrets of guests and managed
    fields never reach the file.
  - The result is a small handle. The objects themselves never become Ansible variables, which would take minutes for
    a cluster of some thousand pods.
  - The cluster is only read, never changed.
options:
  path:
    description:
      - The file to write. An existing file is replaced as a whole, or not at all if anything fails.
      - The file is readable by its owner only, as it describes the whole cluster.
      - It is written on the host on which the task runs. Filters read it on the controller, so run the task there,
        with C(delegate_to) or on V(localhost).
    type: path
    required: true
  create_folder:
    description: Whether the folder of O(path) is made if it is missing, for its owner only.
    type: bool
    default: false
  page_size:
    description:
      - How many objects to ask the API server for at once.
      - Smaller pages are easier on the API server, larger ones are faster.
    type: int
    default: 500
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
      - The cluster is read in check mode too, and C(changed) and the diff are what they would be. Only the file is not
        written. In a play whose later tasks need the file, set C(check_mode=false) for this task.
  diff_mode:
    support: full
    details:
      - The diff is a summary of how the cluster has changed since the file was written. It lists counts, and nodes and
        virtual machine instances that came, went, moved or changed state.
  idempotent:
    support: full
    details:
      - The time of reading is not content. On an unchanged cluster it is renewed in the file without a change reported.
notes:
  - Each list is consistent in itself, at the newest state the API server has. Different lists are read at different
    moments, within seconds.
  - The right to list each kind of object in all namespaces is needed, and nothing else. The kinds, and why each, stand
    in R(the guide to rights,ansible_collections.virtops.kubevirt.docsite.rights).
seealso:
  - module: kubernetes.core.k8s_info
"""

EXAMPLES = r"""
- name: Read the cluster
  virtops.kubevirt.cluster_snapshot:
    path: ~/.cache/production.json
  check_mode: false
  delegate_to: localhost
  register: cluster

- name: Show what there is
  ansible.builtin.debug:
    msg: >-
      {{ cluster.counts.vmis }} virtual machines on {{ cluster.counts.nodes }} nodes,
      KubeVirt {{ cluster.cluster.kubevirt_version }}
"""

RETURN = r"""
snapshot_path:
  description: The file. Filters take it, or the whole result, in place of lists of objects.
  returned: success
  type: str
  sample: /var/lib/awx/production.json
sha256:
  description:
    - Digest of the objects in the file, without its first line. Snapshots of an unchanged cluster have the same one.
  returned: success
  type: str
  sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
schema_version:
  description: Version of the file's format.
  returned: success
  type: int
  sample: 1
taken_at:
  description: When reading began, in UTC.
  returned: success
  type: str
  sample: "2026-11-21T14:03:07Z"
cluster:
  description: Which cluster it is.
  returned: success
  type: dict
  contains:
    uid:
      description: UID of the namespace C(kube-system), which identifies a cluster for as long as it lives.
      returned: success
      type: str
      sample: 0f2a4e9e-7f0c-4f3c-9d8e-3f0a6d8b1c55
    kubernetes_version:
      description: Version of the API server.
      returned: success
      type: str
      sample: v1.36.3
    kubevirt_version:
      description: Version of KubeVirt.
      returned: success
      type: str
      sample: v1.8.4
counts:
  description: Number of objects by the name of their list in the file.
  returned: success
  type: dict
  sample: {"nodes": 60, "pods": 1240, "vmis": 600}
missing_kinds:
  description:
    - Names of the lists that are empty because the cluster does not serve their API, such as V(migrationpolicies), or
      because the user may not read what plans can do without, such as V(networkattachmentdefinitions)
      and V(clusterinstancetypes).
  returned: success
  type: list
  elements: str
  sample: []
size_bytes:
  description: Size of the file.
  returned: success and not in check mode
  type: int
  sample: 5324112
error:
  description: What went wrong, for programs. The same is in C(msg) for people.
  returned: failure
  type: dict
  contains:
    attempted:
      description: What was tried.
      returned: failure
      type: str
      sample: list pods in all namespaces
    object:
      description: On which server or file it was tried.
      returned: failure, unless the task cannot be meant so
      type: str
      sample: https://api.example.org:6443
    status:
      description: HTTP status of the API server's answer, if there was one.
      returned: failure, unless the task cannot be meant so
      type: int
      sample: 403
    reason:
      description: One word for the cause, the server's own where it gave one.
      returned: failure, unless the task cannot be meant so
      type: str
      sample: Forbidden
    server_message:
      description: The words of the server or of the operating system.
      returned: failure, unless the task cannot be meant so
      type: str
      sample: connection refused
    problems:
      description: What is wrong with the task.
      returned: when the task cannot be meant so
      type: list
      elements: str
      sample: ["page_size is 0"]
    remedy:
      description: What to do about it.
      returned: failure
      type: str
      sample: Check the address and port, and that the API server runs and is reachable from this machine.
    missing_rules:
      description: Rules of a ClusterRole that would grant the permissions that are missing.
      returned: when permissions are missing
      type: list
      elements: dict
      sample: [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
"""

from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks import snapshot_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.looks.snapshot import take
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import private_file
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_diff import COMPARED, difference
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.connection import connect
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module, run


def cluster_snapshot(module: Module) -> JsonObject:
    arguments.require_positive(module.params, "page_size", "request_timeout")
    path = Path(module.params["path"])
    creates = module.params["create_folder"] and not path.parent.exists()
    if creates and not module.check_mode:
        snapshot_file.create_folder(path)
    elif not creates:
        snapshot_file.check_writable(path)
    document = take(connect(module), module.params["page_size"])
    before = snapshot_file.find_header(path)
    changed = not document.header.same_content(before) or not private_file.has_mode(path)
    result = {"changed": changed, "snapshot_path": str(path), **document.header.to_json()}
    if module._diff:
        result["diff"] = difference(snapshot_file.load(path) if before else None, document.decoded(*COMPARED))
    if not module.check_mode:
        result["size_bytes"] = snapshot_file.write(path, document)
    return result


def main() -> None:
    argument_spec = {
        **arguments.connection(),
        "path": {"type": "path", "required": True},
        "create_folder": {"type": "bool", "default": False},
        "page_size": {"type": "int", "default": 500},
    }
    run(cluster_snapshot, argument_spec=argument_spec, supports_check_mode=True)


if __name__ == "__main__":
    main()
