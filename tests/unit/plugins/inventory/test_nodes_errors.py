# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong ends Ansible with one clear message, as it would go on without hosts and end well."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.plugins.support.fake_api import Answer, FakeApi, Fault, refusal
from unit.plugins.support.inventories import Ended, ansible, listed, write
from unit.plugins.support.objects import node

pytestmark = pytest.mark.playbook

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
    refused(listed(tmp_path, connection), *words)


def be_away_for(answers: int) -> Fault:
    """As a server that restarts, and asks for half a minute each time."""
    away = [Answer(503, b"shutting down", headers=(("Retry-After", "30"),))] * answers
    return lambda _request: away.pop() if away else None


@pytest.mark.parametrize("where", ["/version", "/api/v1/nodes"])
def test_a_server_that_is_away_for_more_than_a_try_is_waited_for(
    tmp_path: Path, connection: dict[str, str], api: FakeApi, where: str
) -> None:
    """When it connects, and when it reads."""
    api.faults[where] = be_away_for(3)
    found = listed(tmp_path, {**connection, "request_timeout": 5}, hurried=True)
    assert (found.code, {*found.variables}) == (0, {"w1", "w2"}), found.error
    (line,) = found.error.splitlines()
    assert line.startswith("[WARNING]: Nodes are not read yet: API server busy (503), trying again since ")


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal(500, "InternalError", "etcd is away"), ["500, etcd is away", "tried "]),
        (Answer(200, b"<html>"), ["the answer is not JSON", "tried "]),
        (None, ["https://127.0.0.1:1", "connection refused", "tried ", "Check the address"]),
    ],
)
def test_a_server_that_stays_away_ends_it_after_two_minutes(
    tmp_path: Path, connection: dict[str, str], api: FakeApi, answer: Answer | None, words: list[str]
) -> None:
    """None: one that listens to nobody."""
    api.fail("nodes", lambda request: answer)
    nowhere = {} if answer else {"host": "https://127.0.0.1:1"}
    ended = listed(tmp_path, {**connection, **nowhere, "request_timeout": 1}, hurried=True)
    warning, _end, error = ended.error.partition("\n")
    assert warning.startswith("[WARNING]: Nodes are not read yet: API server ")
    refused(replace(ended, error=error), *words)


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
