# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong ends Ansible with one clear message, as it would go on without hosts and end well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.pki import Authority
from unit.plugins.support.fake_api import Answer, FakeApi, refusal
from unit.plugins.support.inventories import Ended, ansible, listed, write
from unit.plugins.support.objects import node

PARSER_ERROR = 4
Options = dict[str, Any]


@pytest.fixture(autouse=True)
def cluster(api: FakeApi) -> None:
    api.lists["nodes"] = [node("w1"), node("w2")]
    api.lists["nodes"][0]["metadata"]["labels"] = {"rack": "7"}


def refused(ended: Ended, *words: str) -> None:
    """Nothing is printed but one line, which has all of these words."""
    assert (ended.code, ended.out) == (PARSER_ERROR, ""), ended.out + ended.error
    (line,) = ended.error.splitlines()
    assert line.startswith("[ERROR]: Inventory ")
    assert "open-sesame" not in line
    for text in words:
        assert text in line


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kubeconfig": "none.yml"}, ["Cannot read the kubeconfig none.yml: it is not there", "Correct the path."]),
        ({"kubeconfig": "- token: open-sesame\n: ["}, ["Cannot read the kubeconfig: its text is no mapping"]),
        ({"kubeconfig": f"{'a' * 5_000}-open-sesame"}, ["Cannot read the kubeconfig aaa", "it is not there"]),
        ({"kubeconfig": "cluster.virtops_nodes.yml", "host": None}, ["its settings are not usable"]),
        (
            {"host": "https://127.0.0.1:1", "request_timeout": 1},
            ["https://127.0.0.1:1", "connection refused", "Check the address"],
        ),
        ({"ca_cert": None}, ["the API server's certificate is not valid", "ca_cert"]),
        ({"api_key": "wrong"}, ["the API server answered 401", "Check the credentials"]),
        ({"api_key": "{{ nowhere }}"}, ["nowhere"]),
        ({"expression": "metadata["}, ["Cannot select nodes: ", "malformed expression"]),
        ({"group_by_labels": ["rak"]}, ["no node has the label rak (do you mean rack?)"]),
        ({"hostnames": ["Hostname"]}, ["2 mistakes: node w1 has none of Hostname; node w2 has none of Hostname"]),
        ({"label_selector": ["a"]}, ["there is no option label_selector (do you mean label_selectors?)"]),
        ({"heartbeat_age": 0}, ["heartbeat_age is 0, but at least 1"]),
        ({"group_by": ["zones"]}, ["zones"]),
        ({"strict": True, "compose": {"a": "nowhere"}}, ["Could not set a for host w1"]),
        ({"cache": True, "cache_plugin": "ansible.builtin.jsonfile"}, ["jsonfile"]),
    ],
)
def test_a_mistake_ends_it(
    tmp_path: Path, connection: dict[str, str], api: FakeApi, changed: Options, words: list[str]
) -> None:
    api.token = "open-sesame"
    options = {name: value for name, value in {**connection, **changed}.items() if value is not None}
    refused(listed(tmp_path, options), *words)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            refusal(403, "Forbidden", "nodes is forbidden"),
            ["Cannot list nodes", "403, nodes is forbidden", "Grant the"],
        ),
        (refusal(400, "BadRequest", "unable to parse"), ["400, unable to parse", "Correct label_selectors"]),
        (refusal(500, "InternalError", "etcd is away"), ["500, etcd is away"]),
        (Answer(200, b"<html>"), ["the answer is not JSON"]),
        (Answer(200, {"kind": "NodeList"}), ["Cannot make hosts of the nodes: KeyError"]),
        (
            Answer(200, {"metadata": {}, "items": [{"metadata": {"name": "w1"}, "status": {"addresses": "a"}}]}),
            ["Node w1 cannot be read: status.addresses is a string"],
        ),
    ],
)
def test_a_bad_answer_ends_it(
    tmp_path: Path, connection: dict[str, str], api: FakeApi, answer: Answer, words: list[str]
) -> None:
    api.fail("nodes", lambda request: answer)
    refused(listed(tmp_path, {**connection, "request_timeout": 1}), *words)


def test_no_play_begins(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    """Not even those on hosts of another inventory."""
    api.forbidden.add("nodes")
    source = write(tmp_path, connection)
    playbook = tmp_path / "play.yml"
    playbook.write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": []}]))
    refused(ansible("ansible-playbook", tmp_path, "-i", "localhost,", "-i", source, playbook), "403")


def test_it_can_be_left_to_ansible(tmp_path: Path, connection: dict[str, str], api: FakeApi) -> None:
    api.forbidden.add("nodes")
    found = listed(tmp_path, {**connection, "required": False})
    assert (found.code, found.variables) == (0, {})
    assert "Cannot list nodes" in found.error
    strictly = {"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}
    assert listed(tmp_path, {**connection, "required": False}, environment=strictly).code == 1


def test_a_server_that_never_answers_is_left(tmp_path: Path, connection: dict[str, str], authority: Authority) -> None:
    """By its limit of time; 192.0.2.0/24 is nobody's."""
    found = listed(tmp_path, {**connection, "host": "https://192.0.2.1", "request_timeout": 1})
    refused(found, "https://192.0.2.1")
