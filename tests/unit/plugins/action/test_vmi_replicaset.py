# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a template tells guests in confidence is not in the log of the host on which the module runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.pki import Authority
from unit.plugins.support import confidential
from unit.plugins.support.fake_api import serving
from unit.plugins.support.playbooks import Task, run_task, write_kubeconfig
from unit.plugins.support.replicas_api import ReplicasApi, shop

pytestmark = pytest.mark.playbook

PASSWORD = "correct-horse-battery"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "db"}, "annotations": confidential.notes(PASSWORD)},
    "spec": {
        "domain": {"memory": {"guest": "1Gi"}, **confidential.domain(PASSWORD)},
        **confidential.spec(f"of two lines:\n{PASSWORD}\n"),
    },
}
# What python-systemd gives a module on a host with a journal; this one is a file.
JOURNAL = """
import json
import os

def send(MESSAGE, **fields):
    with open(os.environ["JOURNAL"], "a") as file:
        print(MESSAGE, fields, file=file)

sendv = None
"""

Play = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def api(authority: Authority) -> Iterator[ReplicasApi]:
    with serving(shop(), authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        assert isinstance(fake, ReplicasApi)
        yield fake


@pytest.fixture
def play(tmp_path: Path, api: ReplicasApi, authority: Authority) -> Play:
    """Run a task of a module; its result, and what stands in the journal since."""
    kubeconfig = write_kubeconfig(tmp_path, api, authority)
    package, journal = tmp_path / "host" / "systemd", tmp_path / "journal"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "journal.py").write_text(JOURNAL)
    (package / "daemon.py").write_text("def booted():\n    return True\n")
    python_path = os.pathsep.join([str(package.parent), os.environ["PYTHONPATH"]])

    def run(module: str, *options: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        task: Task = {f"virtops.kubevirt.{module}": {"kubeconfig": kubeconfig, **arguments}}
        journal.write_text("")
        environment = {"PYTHONPATH": python_path, "JOURNAL": str(journal), "ANSIBLE_INJECT_INVOCATION": "true"}
        result, _lines = run_task(tmp_path, task, *options, environment=environment)
        return result, journal.read_text()

    return run


@pytest.mark.parametrize("options", [("-vvv",), ("--check", "--diff", "-vvv")])
def test_what_guests_are_told_is_not_in_the_journal(play: Play, options: tuple[str, ...]) -> None:
    result, journal = play(
        "vmi_replicaset", *options, namespace="shop", name="db", template=TEMPLATE, unplaceable="ignore"
    )
    assert PASSWORD not in journal
    assert PASSWORD not in str(result)
    assert result["changed"]
    # The result is for the user to see.
    assert result["result"]["metadata"]["name"] == "db"
    assert "censored" not in result


def test_a_task_that_fails_is_not_in_the_journal_either(play: Play) -> None:
    result, journal = play("vmi_replicaset", namespace="shop", name="db", template=TEMPLATE, replicas=-1)
    assert "replicas is -1" in result["msg"]
    assert PASSWORD not in journal


@pytest.mark.parametrize("template", [TEMPLATE, json.dumps(TEMPLATE)])
def test_a_task_that_is_refused_at_once_does_not_show_its_template(play: Play, template: object) -> None:
    arguments = {"namespace": "shop", "name": "db", "template": template, "unplaceable": "refuse"}
    result, journal = play("vmi_replicaset", "-vvv", **arguments)
    assert "value of unplaceable must be one of" in result["msg"]
    assert PASSWORD not in journal
    assert PASSWORD not in str(result)


def test_modules_without_secrets_are_logged(play: Play) -> None:
    """Else the tests above prove nothing."""
    _result, journal = play("node_maintenance", name="n1", owner="us", state="uncordoned")
    assert "Invoked with" in journal
    assert "n1" in journal
