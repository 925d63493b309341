# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
short_description: The nodes of a cluster as hosts, in groups by zone, role and state
version_added: 0.1.0
author:
  - Contributors to the virtops.kubevirt project (@virtops)
description:
  - Makes a host of each node of a Kubernetes cluster, with the address under which the node is reached as
    C(ansible_host).
  - Groups them by zone, region and role, and by their state, such as whether they are cordoned, whether they are fit
    for virtual machines, which run is maintaining them, and which is done with them.
  - Roles P(virtops.kubevirt.plan_maintenance#role), P(virtops.kubevirt.drain#role) and
    P(virtops.kubevirt.uncordon#role) know the node of each host by its variable C(drain_node), whatever the host is
    called.
  - A file that ends in C(virtops_nodes.yml), C(virtops_nodes.yaml), C(kubevirt_nodes.yml) or C(kubevirt_nodes.yaml)
    says at a glance what it is. Any other name that ends in C(.yml) or C(.yaml) will do, as long as O(plugin) stands
    in the file as plain text.
  - Texts from the cluster, such as labels and the reason of a cordon, are never taken for templates. Addresses and
    names that are none, or that lead back to the controller, are passed over with a warning.
requirements:
  - jmespath >= 1.0.0, for O(expression)
options:
  plugin:
    description: Says that the file is for this plugin.
    type: str
    required: true
    choices: [virtops.kubevirt.nodes]
  label_selectors:
    description:
      - Labels that nodes have to have, such as V(node-role.kubernetes.io/worker) or V(rack in (7, 8\)). All of them
        have to match.
    type: list
    elements: str
    default: []
  field_selectors:
    description: Fields that nodes have to have, such as V(spec.unschedulable=true). All of them have to match.
    type: list
    elements: str
    default: []
  expression:
    description:
      - A JMESPath expression over the whole Node object. Nodes of which it is not true are left out, such as all but
        those for which V(starts_with(status.nodeInfo.kubeletVersion, 'v1.35'\)) holds.
    type: str
  hostnames:
    description:
      - What a host is called, by the first of these that its node has.
      - V(name) is the node's own name. V(label:KEY) is the value of a label.
      - The others are types of addresses, V(InternalIP), V(InternalDNS), V(Hostname), V(ExternalIP) and
        V(ExternalDNS).
      - Two nodes with the same name of a host are an error.
    type: list
    elements: str
    default: [name]
  address_types:
    description:
      - Which of a node's addresses becomes C(ansible_host), the first that it has. Without any the host is reached by
        its name.
    type: list
    elements: str
    choices: [InternalIP, InternalDNS, Hostname, ExternalIP, ExternalDNS]
    default: [InternalIP, Hostname, ExternalIP]
  annotations:
    description: Keys of annotations that hosts get as C(node_annotations), as far as their nodes have them.
    type: list
    elements: str
    default: []
  group_by:
    description:
      - For what there are groups, beside C(kubernetes_nodes) of all nodes.
      - V(zone) and V(region) make C(zone_VALUE) and C(region_VALUE) of the labels C(topology.kubernetes.io/zone) and
        C(topology.kubernetes.io/region).
      - V(role) makes C(role_NAME) of each label C(node-role.kubernetes.io/NAME).
      - V(cordon) makes C(cordoned), of nodes that are cordoned by anybody.
      - V(kubevirt) makes C(kubevirt_fit), C(kubevirt_unfit), and C(kubevirt_absent) of nodes on which virt-handler
        has never been. A node is fit when it is Ready, virt-handler's last sign of life is not older than
        O(heartbeat_age), and its label C(kubevirt.io/schedulable) is V(true), as role
        P(virtops.kubevirt.uncordon#role) judges it.
      - V(maintenance) makes C(in_maintenance) of nodes that this collection has cordoned, with a group
        C(in_maintenance_RUN) for each run or other owner, and C(maintained) of nodes that a run is done with, with a
        group C(maintained_RUN) for each run.
    type: list
    elements: str
    choices: [zone, region, role, cordon, kubevirt, maintenance]
    default: [zone, region, role, cordon, kubevirt, maintenance]
  group_by_labels:
    description:
      - Keys of labels. Each makes groups C(label_KEY_VALUE). To call the groups otherwise use O(keyed_groups).
      - It is an error if there are nodes and none has the label, as it is misspelt then.
    type: list
    elements: str
    default: []
  group_prefix:
    description:
      - What the names of all these groups begin with, for example to tell clusters apart. Groups of O(groups) and
        O(keyed_groups) are called as you say.
    type: str
    default: ""
  heartbeat_age:
    description: Seconds that virt-handler's last sign of life may be old. It gives one about every one to two minutes.
    type: int
    default: 180
  required:
    description:
      - Whether Ansible ends, with exit code 4, when the nodes cannot be read or the file has a mistake.
      - Ansible itself just warns of an inventory that it cannot read, goes on with the hosts that it has, and exits
        with 0 in the end, unless C(any_unparsed_is_failed) is set. With V(false) it does.
    type: bool
    default: true
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - virtops.kubevirt._connection
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
seealso:
  - ref: ansible_collections.virtops.kubevirt.docsite.rights
    description: Accounts with the rights of maintenance.
notes:
  - All it needs is the right to list nodes, a C(ClusterRole) with C(apiGroups=[""]), C(resources=[nodes]) and
    C(verbs=[list]).
  - Options of the connection may be templates, for example with a lookup. What they do not say is taken from the
    variables E(K8S_AUTH_HOST), E(K8S_AUTH_API_KEY) and so on, which a Kubernetes credential of AWX sets, too.
  - A relative path in O(kubeconfig) is sought beside the inventory file first. The kubeconfig may be encrypted with
    Ansible Vault.
  - Hosts have the variables C(node_name), C(node_uid), C(node_labels) (without those of KubeVirt's node labeller,
    which are hundreds), C(node_annotations), C(node_roles), C(node_zone), C(node_region), C(node_addresses),
    C(node_taints), C(node_ready), C(node_cordoned), C(node_cordon) (C(by), C(since), C(reason) and C(marked)),
    C(node_maintained) (the run that is done with the node), C(node_kubevirt) (C(status), C(schedulable), C(heartbeat)
    and C(obstacles)), C(node_allocatable) and C(node_info).
  - With O(cache) groups and variables are as old as the cache. Roles decide by the cluster itself. C(--flush-cache)
    and C(meta=refresh_inventory) read it anew.
  - A file that is no YAML, and a collection that is not installed, are not seen by the plugin. Set
    C(any_unparsed_is_failed) in section C(inventory) of F(ansible.cfg) to end with those, too.
"""

EXAMPLES = r"""
# cluster.virtops_nodes.yml - all nodes of the cluster of K8S_AUTH_KUBECONFIG, KUBECONFIG or ~/.kube/config
plugin: virtops.kubevirt.nodes

---
# Workers of two zones, called as they are in DNS, and never those that another team cares for.
plugin: virtops.kubevirt.nodes
kubeconfig: maintenance.kubeconfig
label_selectors:
  - node-role.kubernetes.io/worker
  - topology.kubernetes.io/zone in (bcn, scu)
expression: metadata.labels.team != 'storage'
hostnames:
  - Hostname
  - name
compose:
  ansible_user: "'core' if 'CoreOS' in node_info.os_image else 'root'"

---
# Two clusters side by side, groups of one's own, and at most one look in ten minutes.
plugin: virtops.kubevirt.nodes
context: production
group_prefix: production_
group_by_labels:
  - performance
groups:
  patchable: not node_cordoned and node_kubevirt.status == 'fit'
keyed_groups:
  - key: node_info.kubelet_version
    prefix: kubelet
strict: true
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.ansible/tmp/nodes
cache_timeout: 600
"""

import json
import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.nodes import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory import hosts
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.hosts import require_labels, selected
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.expected import ExpectedError, MissingLibrary
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import JsonObject
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief
from ansible_collections.virtops.kubevirt.plugins.module_utils._module import arguments
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.libraries import how_to_install
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _kubeconfig
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._node_source import (
    NodeLook,
    NodeQuery,
    as_variable,
    from_cache,
    look,
)

_ENDINGS = tuple(f"{name}_nodes.{ending}" for name in ("virtops", "kubevirt") for ending in ("yml", "yaml"))
_OWN = re.compile(r"""^plugin\s*:\s*(["']?)virtops\.kubevirt\.nodes\1\s*(?:#.*)?$""", re.MULTILINE)
_MOST_READ = 100_000
_PARSER_ERROR = 4  # Ansible's own exit code for a file that it cannot use


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):  # type: ignore[misc]  # Ansible has no types
    NAME = "virtops.kubevirt.nodes"

    def verify_file(self, path: str) -> bool:
        """By its content as well: of a file that no plugin takes Ansible only warns."""
        if not super().verify_file(path):
            return False
        return path.endswith(_ENDINGS) or (path.endswith((".yml", ".yaml")) and _names_plugin(path))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        named = loader.load_from_file(path, cache="none")
        if not isinstance(named, dict) or named.get("plugin") != self.NAME:
            raise AnsibleParserError(f"{path} is not for plugin {self.NAME}.")  # and maybe for another one
        try:
            self._take_options(path)
            self._fill(self._look(path, cache))
        except MissingLibrary as error:
            self._end(path, how_to_install(error))
        except (AnsibleError, ExpectedError, Failure, InvalidRequest) as error:
            self._end(path, str(error))
        except Exception as error:  # noqa: BLE001  # whatever it is, Ansible would go on without hosts
            self._end(path, f"Cannot make hosts of the nodes: {type(error).__name__}: {error}")

    def _end(self, path: str, reason: str) -> NoReturn:
        """End with one message. Ansible turns every exception of an inventory plugin into a warning, but this one."""
        message = f"Inventory {path} gives no hosts. {reason}"
        if not self._options.get("required", True):
            raise AnsibleParserError(message) from None
        self.display.error(message, wrap_text=False)
        raise SystemExit(_PARSER_ERROR)

    def _take_options(self, path: str) -> None:
        """Raises AnsibleError, InvalidRequest."""
        given = self._read_config_data(path)
        options = self.option_definitions
        known = {alias for name, option in options.items() for alias in (name, *(option.get("aliases") or ()))}
        problems = [_unknown(str(name), known) for name in given if name not in known]
        numbers = ("heartbeat_age", "request_timeout")
        problems += [
            f"{name} is {self.get_option(name)}, but at least 1" for name in numbers if self.get_option(name) < 1
        ]
        if problems:
            raise InvalidRequest("take the options of the inventory", problems, "Correct the file.")

    def _look(self, path: str, cache: bool) -> NodeLook:
        """Raises AnsibleError, Failure, InvalidRequest, ExpectedError."""
        query = NodeQuery(
            connection=self._connection(path),
            label_selectors=self.get_option("label_selectors"),
            field_selectors=self.get_option("field_selectors"),
        )
        if not self.get_option("cache"):
            return look(query, self._tell)
        key = f"{self.get_cache_key(path)}_{query.identity}"
        found = from_cache(self._cache.get(key)) if cache else None
        if found is None:
            found = look(query, self._tell)
            self._cache[key] = found.to_cache()
        return found

    def _tell(self, line: str) -> None:
        """Something about the API server, while it is waited for."""
        self.display.warning(f"Nodes are not read yet: {line}.")

    def _connection(self, path: str) -> JsonObject:
        """The options of the connection, templates evaluated, in plain types. Raises AnsibleError, InvalidRequest."""
        self.templar.available_variables = self._vars
        found = {name: self.templar.template(self.get_option(name)) for name in arguments.cluster()}
        found["kubeconfig"] = _kubeconfig.meant(found["kubeconfig"])
        if isinstance(found["kubeconfig"], str) and os.pathsep not in found["kubeconfig"]:
            found["kubeconfig"] = self._kubeconfig(found["kubeconfig"], Path(path).parent)
        # Ansible's own kinds of texts know where they come from, which clients do not expect.
        plain: JsonObject = json.loads(json.dumps(found))
        return plain

    def _kubeconfig(self, given: str, folder: Path) -> str:
        """The file that is meant, decrypted if need be."""
        meant = Path(given).expanduser()
        for file in (folder / meant, meant):
            if _kubeconfig.is_file(file):
                return str(self.loader.get_real_file(str(file.absolute())))
        problem = "it is not there, nor beside the inventory"
        raise InvalidRequest(f"read the kubeconfig {brief(given)}", [problem], "Correct the path.")

    def _fill(self, found: NodeLook) -> None:
        """Raises InvalidRequest, MissingLibrary, AnsibleError."""
        names = ("hostnames", "address_types", "annotations", "group_by", "group_by_labels", "group_prefix")
        rules = hosts.HostRules(
            **{name: self.get_option(name) for name in names}, heartbeat_age=self.get_option("heartbeat_age")
        )
        require_labels(found.nodes, rules.group_by_labels)
        nodes = selected(found.nodes, self.get_option("expression"))
        made = hosts.hosts(nodes, rules, found.read_at, FIELD_MANAGER)
        for remark in hosts.remarks(nodes, rules):
            self.display.warning(remark)
        for host in made:
            self._add(host)

    def _add(self, host: hosts.NodeHost) -> None:
        self.inventory.add_host(host.name)
        variables = {name: as_variable(value) for name, value in host.variables.items()}
        for name, value in variables.items():
            self.inventory.set_variable(host.name, name, value)
        for group in host.groups:
            name = self.inventory.add_group(self._sanitize_group_name(group.name))
            self.inventory.add_child(name, host.name)
            if group.parent:
                self.inventory.add_child(self.inventory.add_group(self._sanitize_group_name(group.parent)), name)
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), variables, host.name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host.name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host.name, strict=strict)


def _names_plugin(path: str) -> bool:
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return bool(_OWN.search(file.read(_MOST_READ)))


def _unknown(name: str, known: set[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"there is no option {name}" + (f" (do you mean {near[0]}?)" if near else "")
