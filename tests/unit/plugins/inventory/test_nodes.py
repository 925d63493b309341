# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of a cluster become hosts, through real processes of Ansible and a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible.inventory.data import InventoryData
from ansible_collections.virtops.kubevirt.plugins.inventory.nodes import EXAMPLES, InventoryModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.groups import NodeGroup
from ansible_collections.virtops.kubevirt.plugins.module_utils._inventory.hosts import NodeHost

from testbed.pki import Authority
from unit.plugins.support.fake_api import FakeApi
from unit.plugins.support.inventories import ansible, listed, write
from unit.plugins.support.objects import node
from unit.plugins.support.playbooks import write_kubeconfig

pytestmark = pytest.mark.playbook

ZONE = "topology.kubernetes.io/zone"
EVIL = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}"


@pytest.fixture(autouse=True)
def cluster(api: FakeApi) -> None:
    """Three nodes in two zones; the second is cordoned."""
    for number, zone in ((1, "eu-1a"), (2, "eu-1a"), (3, "eu-1b")):
        one = node(f"w{number}", unschedulable=number == 2)
        one["metadata"]["labels"] = {ZONE: zone, "rack": str(number)}
        address = {"type": "InternalIP", "address": f"10.0.0.{number}"}
        one["status"]["addresses"] = [address, {"type": "Hostname", "address": f"w{number}.example"}]
        one["status"]["nodeInfo"] = {"kubeletVersion": f"v1.3{number}.0", "osImage": "Debian GNU/Linux 13 (trixie)"}
        api.lists["nodes"].append(one)


def test_nodes_are_hosts_in_groups(tmp_path: Path, connection: dict[str, str]) -> None:
    found = listed(
        tmp_path, {**connection, "group_prefix": "a_", "group_by_labels": ["rack"], "hostnames": ["Hostname"]}
    )
    assert (found.code, found.error) == (0, "")
    assert found.members("a_zone_eu_1a") == {"w1.example", "w2.example"}
    assert found.members("a_cordoned") == found.members("a_label_rack_2") == {"w2.example"}
    # Texts that can be no template are plain ones, as AWX expects them.
    variables = found.variables["w1.example"]
    assert (variables["ansible_host"], variables["drain_node"], variables["node_zone"]) == ("10.0.0.1", "w1", "eu-1a")


def test_standard_features_of_inventories_work(tmp_path: Path, connection: dict[str, str]) -> None:
    options = {
        **connection,
        "compose": {"ansible_user": "'core' if 'Debian' not in node_info.os_image else 'root'"},
        "groups": {"patchable": "not node_cordoned"},
        "keyed_groups": [{"key": "node_info.kubelet_version", "prefix": "kubelet", "parent_group": "kubelets"}],
        "strict": True,
    }
    found = listed(tmp_path, options)
    # What templates give is marked since 2.19, whatever plugin composes it.
    assert found.variables["w1"]["ansible_user"] in ("root", {"__ansible_unsafe": "root"})
    assert found.members("patchable") == {"w1", "w3"}
    assert found.members("kubelet_v1_32_0") == {"w2"}
    assert found.members("kubelets") == {"w1", "w2", "w3"}


def test_the_server_and_an_expression_select(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    options = {
        **connection,
        "label_selectors": ["rack in (1, 2)", "!gpu"],
        "field_selectors": ["spec.unschedulable=false"],
        "expression": "status.nodeInfo.kubeletVersion == 'v1.33.0'",
    }
    assert set(listed(tmp_path, options).variables) == {"w3"}
    (request,) = api.asked("nodes")
    assert request.query["labelSelector"] == "rack in (1, 2),!gpu"
    assert request.query["fieldSelector"] == "spec.unschedulable=false"


def test_texts_of_the_cluster_are_never_templates(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    """Neither in variables, nor in what is composed of them, nor in names of groups."""
    witness = tmp_path / "witness"
    evil = EVIL % witness
    for one in api.lists["nodes"]:
        mark = {"owner": evil, "since": evil, "reason": evil}
        one["metadata"]["annotations"] |= {"evil": evil, "virtops.kubevirt/maintenance": json.dumps(mark)}
        one["metadata"]["labels"] |= {"evil": evil, ZONE: evil}
        one["status"]["nodeInfo"]["osImage"] = evil
        one["status"]["addresses"].append({"type": "ExternalIP", "address": evil})
    options = {
        **connection,
        "annotations": ["evil"],
        "group_by_labels": ["evil"],
        "compose": {"composed": "node_annotations.evil ~ node_zone"},
        "groups": {"made": "node_cordon.reason | default('') is match('.*lookup')"},
        "keyed_groups": [{"key": "node_annotations"}, {"key": "node_cordon.by | default('')"}],
    }
    source = write(tmp_path, options)
    playbook = tmp_path / "play.yml"
    shown = "{{ [composed, node_annotations, node_labels, node_cordon, node_info, hostvars[inventory_hostname]] }}"
    tasks: list[Any] = [{"ansible.builtin.debug": {"msg": shown}}]
    tasks += [{"ansible.builtin.debug": {"var": "composed"}, "when": "composed is match('.*pipe')"}]
    tasks += [{"ansible.builtin.assert": {"that": ["composed == node_annotations.evil ~ node_zone"]}}]
    play = {"hosts": "kubernetes_nodes", "connection": "local", "gather_facts": False, "tasks": tasks}
    playbook.write_text(yaml.safe_dump([play]))
    done = ansible("ansible-playbook", tmp_path, "-i", source, playbook)
    assert done.code == 0, done.out + done.error
    assert "passed over" in done.error
    assert evil.replace("'", "\\'") in done.out or evil in done.out
    assert done.out.count("failed=0") == 3
    assert not witness.exists()


def test_a_second_look_comes_from_the_cache(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    cache = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    options = {**connection, **cache}
    first = listed(tmp_path, options)
    assert len(api.asked("nodes")) == 1
    again = listed(tmp_path, options)
    assert again == first
    assert len(api.asked("nodes")) == 1
    # Another question is not answered from it, and neither is who wants it anew.
    listed(tmp_path, {**options, "label_selectors": ["rack"]})
    assert len(api.asked("nodes")) == 2
    (kept,) = [file for file in (tmp_path / "cache").iterdir() if "w1" in file.read_text()][:1]
    assert "open-sesame" not in kept.read_text()
    api.lists["nodes"].pop()
    assert set(listed(tmp_path, options, "--flush-cache").variables) == {"w1", "w2"}


def test_what_another_release_has_cached_is_read_anew(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    folder = tmp_path / "cache"
    cache = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(folder)}
    first = listed(tmp_path, {**connection, **cache})
    for file in folder.iterdir():
        file.write_text(file.read_text().replace("nodes/1", "nodes/0"))
    assert listed(tmp_path, {**connection, **cache}).variables == first.variables
    assert len(api.asked("nodes")) == 2


def test_the_kubeconfig_may_lie_beside_the_inventory(tmp_path: Path, api: FakeApi, authority: Authority) -> None:
    name = write_kubeconfig(tmp_path, api, authority)
    assert set(listed(tmp_path, {"kubeconfig": f"files/{name}"}).variables) == {"w1", "w2", "w3"}


def test_the_kubeconfig_may_be_encrypted(tmp_path: Path, api: FakeApi, authority: Authority) -> None:
    file = tmp_path / "files" / write_kubeconfig(tmp_path, api, authority)
    password = tmp_path / "password"
    password.write_text("sesame")
    vault = ("--vault-password-file", str(password))
    assert ansible("ansible-vault", tmp_path, "encrypt", *vault, file).code == 0
    assert set(listed(tmp_path, {"kubeconfig": str(file)}, *vault).variables) == {"w1", "w2", "w3"}
    assert "vault password" in listed(tmp_path, {"kubeconfig": str(file)}).error


def test_variables_of_the_process_stand_for_options(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    """As AWX gives the credential of a cluster."""
    api.token = "open-sesame"
    names = {"host": "K8S_AUTH_HOST", "api_key": "K8S_AUTH_API_KEY", "ca_cert": "K8S_AUTH_SSL_CA_CERT"}
    environment = {names[name]: value for name, value in connection.items()}
    assert set(listed(tmp_path, {}, environment=environment).variables) == {"w1", "w2", "w3"}


def test_options_of_the_connection_may_be_templates(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    api.token = "open-sesame"
    options = {**connection, "api_key": "{{ lookup('ansible.builtin.env', 'TOKEN') }}"}
    found = listed(tmp_path, options, environment={"TOKEN": "open-sesame"})
    assert set(found.variables) == {"w1", "w2", "w3"}


def test_any_name_of_a_file_will_do_that_names_the_plugin(tmp_path: Path, connection: dict[str, str]) -> None:
    source = write(tmp_path, connection, "production.yaml")
    assert set(ansible("ansible-inventory", tmp_path, "-i", source, "--list").variables) == {"w1", "w2", "w3"}


def test_files_of_others_are_left_to_them(tmp_path: Path) -> None:
    """Also where the plugin is asked first, and where the name would be right."""
    source = tmp_path / "my_kubevirt_nodes.yml"
    source.write_text(yaml.safe_dump({"all": {"hosts": {"static": {}}}}))
    enabled = {"ANSIBLE_INVENTORY_ENABLED": "virtops.kubevirt.nodes,yaml"}
    found = ansible("ansible-inventory", tmp_path, "-i", source, "--list", environment=enabled)
    assert found.members("all") == {"static"}


@pytest.mark.parametrize("example", [*yaml.safe_load_all(EXAMPLES)], ids=("all", "workers", "production"))
def test_the_examples_run(tmp_path: Path, connection: dict[str, str], api: FakeApi, example: dict[str, Any]) -> None:
    for one in api.lists["nodes"]:
        one["metadata"]["labels"]["performance"] = "high"
    own = {name: value for name, value in example.items() if name not in ("plugin", "kubeconfig", "context")}
    found = listed(tmp_path, {**own, **connection}, environment={"HOME": str(tmp_path)})
    assert (found.code, found.error, len(found.variables)) == (0, "", 3)


TEXTS = st.text(max_size=20)


@given(st.lists(TEXTS), st.lists(TEXTS))
def test_names_of_groups_are_what_ansible_can_take(groups: list[str], parents: list[str]) -> None:
    plugin = InventoryModule()
    plugin.inventory = InventoryData()
    plugin._options = {"strict": False, "compose": {}, "groups": {}, "keyed_groups": []}
    made = [NodeGroup(f"zone_{text}") for text in groups]
    made += [NodeGroup(f"in_maintenance_{text}", "in_maintenance") for text in parents]
    plugin._add(NodeHost("w1", "w1", made, {"node_name": "w1"}))
    plugin.inventory.reconcile_inventory()
    names = set(plugin.inventory.groups) - {"all", "ungrouped"}
    assert all(name.isidentifier() or name.replace("_", "").isalnum() for name in names)
    assert len(plugin.inventory.get_host("w1").get_groups()) == len({*names, "all"} if names else {"all", "ungrouped"})
