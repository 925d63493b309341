# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a planned run: nothing is rebalanced before all nodes are back, nor forgotten while something is off."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_store import RunStore
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, MAINTAINED, Mark
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.stopped_mark import StoppedMark, marked

from testbed.pki import Authority
from unit.playbooks.playing import play as run
from unit.plugins.support.draining_api import vm_path
from unit.plugins.support.modules import isolate
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import CLUSTER, RunApi, running

pytestmark = pytest.mark.playbook

ROOT = Path(__file__).parents[3]
# Its first task, which goes no further without a cluster.
REBALANCE = "rebalance : See that all that is to be done is allowed"
PLAN = {"run": "kernel", "invocation": "a1", "cluster_uid": CLUSTER, "batches": [["n1", "n2"]]}
LATER = "is decided when all nodes are back"


def ended(
    folder: Path,
    play: dict[str, Any],
    *options: str,
    done: Iterable[str] = (),
    kubeconfig: Path | None = None,
    begun_in: Path | None = None,
) -> tuple[str, int]:
    """What a last play tells, and its status. Of the run's nodes, n1 and n2, these are done."""
    facts = [{"uncordon_done": True} if name in done else {} for name in ("n1", "n2")]
    hosts = [
        {"ansible.builtin.add_host": {"name": f"n{number}", **given}} for number, given in enumerate(facts, start=1)
    ]
    plan = {"ansible.builtin.set_fact": {"plan_maintenance_batches": [["n1", "n2"]], "plan_maintenance_plan": PLAN}}
    taken = yaml.safe_load((ROOT / "playbooks/steps/check.yml").read_text())[0]
    first = {"hosts": "localhost", "gather_facts": False, "tasks": [*hosts, plan, taken]}
    return run(folder, yaml.safe_dump([first, play]), *options, kubeconfig=kubeconfig, begun_in=begun_in)


def readme() -> dict[str, Any]:
    """The last play of the README's playbook."""
    section = (ROOT / "README.md").read_text().partition("### The same as your own playbook")[2]
    example = re.search(r"```yaml\n(.*?)```", section, re.DOTALL)
    assert example
    play: dict[str, Any] = yaml.safe_load(example[1])[-1]
    return play


def rolling() -> dict[str, Any]:
    """What follows the report in the last play of rolling_maintenance, up to letting go of the run."""
    play = yaml.safe_load((ROOT / "playbooks/rolling_maintenance.yml").read_text())[-1]
    (block,) = play["tasks"]
    return {"hosts": "localhost", "gather_facts": False, "vars": play["vars"], "tasks": block["block"][1:]}


def test_a_forecast_says_that_rebalancing_is_decided_later(tmp_path: Path) -> None:
    told, status = ended(tmp_path, rolling(), "--check", done=["n1", "n2"])
    assert (status, LATER in told, REBALANCE in told) == (0, True, False), told


def test_a_run_that_has_come_true_is_rebalanced(tmp_path: Path) -> None:
    told, _status = ended(tmp_path, rolling(), done=["n1", "n2"])
    assert (LATER in told, REBALANCE in told) == (False, True), told


def test_who_leaves_everything_where_it_is_hears_nothing_of_it(tmp_path: Path) -> None:
    told, status = ended(tmp_path, rolling(), "--check", "-e", '{"rolling_maintenance_rebalance": false}')
    assert (status, LATER in told, REBALANCE in told) == (0, False, False), told


@pytest.mark.slow
def test_the_readme_rebalances_only_after_all_nodes(tmp_path: Path) -> None:
    told, status = ended(tmp_path, readme(), done=["n1"])
    assert (status, REBALANCE in told) == (2, False), told
    assert "Not done: n2" in told
    assert REBALANCE in ended(tmp_path, readme(), done=["n1", "n2"])[0]


def letting_go() -> dict[str, dict[str, Any]]:
    """What comes last of all, of rolling_maintenance and of the README's playbook."""
    play = yaml.safe_load((ROOT / "playbooks/rolling_maintenance.yml").read_text())[-1]
    (block,) = play["tasks"]
    own = {"hosts": "localhost", "gather_facts": False, "vars": play["vars"], "tasks": block["always"]}
    return {"rolling_maintenance": own, "readme": {**readme(), "roles": []}}


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunApi]:
    """VM db-1 was stopped for node n1, which carries the run's mark; the cluster remembers the run's plan."""
    isolate(monkeypatch, tmp_path)
    authority = Authority(tmp_path)
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        write_kubeconfig(tmp_path, fake, authority)
        cordon = Mark("kernel", "2026-01-01T00:00:00Z")
        fake.add_node("n1")["metadata"]["annotations"] = {CORDON_NOTE: cordon.to_text()}
        fake.add_vm("db-1")["metadata"] |= marked({"n1": StoppedMark("kernel", "Always", "2026-01-01T00:00:00Z")})
        connection = {"host": fake.url, "api_key": "secret", "ca_cert": str(authority.cert)}
        RunStore(connect_by(connection, 5), "kernel", "medik8s-leases").put("plan", b"{}")
        fake.requests.clear()
        yield fake


def comes_back(api: RunApi) -> None:
    api.node("n1")["metadata"]["annotations"].clear()
    api.objects[vm_path("db-1")]["metadata"]["labels"].clear()


@pytest.mark.parametrize("whose", ["rolling_maintenance", pytest.param("readme", marks=pytest.mark.slow)])
def test_a_run_that_leaves_something_off_is_not_complete(tmp_path: Path, api: RunApi, whose: str) -> None:
    """Though each of its nodes is done."""
    play, nodes, cluster = letting_go()[whose], ["n1", "n2"], tmp_path / "files/cluster.kubeconfig"
    told, status = ended(tmp_path, play, done=nodes, kubeconfig=cluster)
    assert status == 2, told
    assert "VirtualMachine shop/db-1, stopped for node n1; node n1, not given back" in told
    assert "start the same command again" in told
    assert "without plan_maintenance_file and its digest if that has other nodes" in told
    assert "abort_run=kernel" in told
    assert len(api.config_maps()) == 1
    comes_back(api)
    told, status = ended(tmp_path, play, done=nodes, kubeconfig=cluster)
    assert (status, api.config_maps()) == (0, []), told


def test_of_much_that_is_left_the_first_is_told(tmp_path: Path, api: RunApi) -> None:
    for number in range(2, 15):
        mark = StoppedMark("kernel", "Always", "2026-01-01T00:00:00Z")
        api.add_vm(f"db-{number}")["metadata"] |= marked({"n1": mark})
    play, cluster = letting_go()["rolling_maintenance"], tmp_path / "files/cluster.kubeconfig"
    told, _status = ended(tmp_path, play, done=["n1", "n2"], kubeconfig=cluster)
    found = re.search(r"Left: (.*?)\. Remove the cause", told)
    assert found, told
    assert (found[1].count("stopped for node n1"), found[1].endswith("; and 5 more")) == (10, True), told


def abort_command(told: str) -> list[str]:
    """What follows the name of the playbook, as a shell takes it."""
    found = re.search(r"FAILED! => (\{.*\})", told)
    assert found, told
    message = json.loads(found[1])["msg"]
    return shlex.split(message[message.index("ansible-playbook virtops.kubevirt.abort") :])[2:]


@pytest.mark.parametrize(
    "named",
    [
        "by variables",
        pytest.param("by the environment", marks=pytest.mark.slow),
        pytest.param("by a relative path", marks=pytest.mark.slow),
    ],
)
def test_the_command_that_undoes_a_run_works_as_it_is_told(tmp_path: Path, api: RunApi, named: str) -> None:
    """From any folder and environment, though the path has a space."""
    cluster, elsewhere = tmp_path / "my cluster" / "kubeconfig", tmp_path / "elsewhere"
    for folder in (cluster.parent, elsewhere):
        folder.mkdir()
    (tmp_path / "files/cluster.kubeconfig").rename(cluster)
    path = "kubeconfig" if named == "by a relative path" else str(cluster)
    variables = {"rolling_maintenance_kubeconfig": path, "rolling_maintenance_context": "x"}
    given = {} if named == "by the environment" else variables
    play = letting_go()["rolling_maintenance"]
    told, status = ended(
        tmp_path,
        play,
        "-e",
        json.dumps(given),
        done=["n1", "n2"],
        kubeconfig=cluster,
        begun_in=cluster.parent,
    )
    assert status == 2, told
    command = abort_command(told)
    assert ("abort_context" in " ".join(command)) is bool(given)
    playbook = "- import_playbook: virtops.kubevirt.abort\n"
    told, status = run(tmp_path, playbook, "--check", "--diff", *command, begun_in=elsewhere)
    assert (status, "-cordon of node n1" in told) == (0, True), told


def test_a_run_is_undone_in_its_own_cluster(tmp_path: Path, api: RunApi) -> None:
    """Another one that answers knows nothing of it, which would look as if all of it was undone."""
    playbook, cluster = "- import_playbook: virtops.kubevirt.abort\n", tmp_path / "files/cluster.kubeconfig"
    given = ("-e", "abort_run=kernel", "-e", "abort_cluster_uid=uid-of-before")
    told, status = run(tmp_path, playbook, *given, kubeconfig=cluster)
    assert (status, f"its uid is {CLUSTER}, not uid-of-before" in told, api.writes()) == (2, True, []), told


@pytest.mark.parametrize("form", [dict, yaml.safe_dump, json.dumps])
def test_a_command_that_undoes_a_run_tells_no_secret(tmp_path: Path, api: RunApi, form: Callable[..., Any]) -> None:
    """A kubeconfig may be given by its content."""
    cluster = tmp_path / "files/cluster.kubeconfig"
    given = {"rolling_maintenance_kubeconfig": form(yaml.safe_load(cluster.read_text()))}
    play = letting_go()["rolling_maintenance"]
    told, status = ended(tmp_path, play, "-e", json.dumps(given), done=["n1", "n2"], kubeconfig=cluster)
    assert status == 2, told
    assert abort_command(told) == ["-e", "abort_run=kernel", "-e", f"abort_cluster_uid={CLUSTER}"]
    assert "with abort_kubeconfig as rolling_maintenance_kubeconfig is: ansible-playbook" in told
    assert "token" not in told


def test_the_report_of_a_run_is_kept_with_its_record(tmp_path: Path, api: RunApi) -> None:
    """For a job that has nothing of the first one's but the cluster."""
    comes_back(api)
    play, cluster = letting_go()["rolling_maintenance"], tmp_path / "files/cluster.kubeconfig"
    hold = {"virtops.kubevirt.maintenance_run": {"run": "kernel"}}
    tell = {"ansible.builtin.import_tasks": str(ROOT / "playbooks/steps/report.yml")}
    keep = ("-e", '{"rolling_maintenance_keep_record": true}')
    whole = {**play, "tasks": [hold, tell, *play["tasks"]]}
    told, status = ended(tmp_path, whole, *keep, done=["n1", "n2"], kubeconfig=cluster)
    assert status == 0, told
    read = {"virtops.kubevirt.maintenance_run": {"run": "kernel", "state": "released", "keep_record": True}}
    show = {"ansible.builtin.debug": {"msg": "{{ over.report | join('; ') }}"}}
    later = {"hosts": "localhost", "gather_facts": False, "tasks": [{**read, "register": "over"}, show]}
    told, status = run(tmp_path, yaml.safe_dump([later]), kubeconfig=cluster)
    assert (status, "; Run kernel:; n1: done; n2: done" in told) == (0, True), told


def test_a_host_whose_maintenance_has_ended_it_is_told_of(tmp_path: Path) -> None:
    emptied = {"ansible.builtin.add_host": {"name": "n2", "drain_boot_id": "b1"}}
    tell = {"ansible.builtin.import_tasks": str(ROOT / "playbooks/steps/report.yml")}
    told, status = ended(tmp_path, {**rolling(), "tasks": [emptied, tell]})
    told = " ".join(told.split())
    assert (status, "Not done: n1, n2. n2: emptied, but not given back, as it was lost" in told) == (2, True), told
    assert "or `meta: end_host` in its maintenance has ended it: let that skip tasks instead. Remove the cause" in told


def test_a_forecast_tells_what_is_off_now_and_does_not_fail_for_it(tmp_path: Path, api: RunApi) -> None:
    """As the run may bring it back."""
    play, cluster = letting_go()["rolling_maintenance"], tmp_path / "files/cluster.kubeconfig"
    told, status = ended(tmp_path, play, "--check", done=["n1", "n2"], kubeconfig=cluster)
    assert (status, "VirtualMachine shop/db-1, stopped for node n1" in told) == (0, True), told
    assert api.writes() == []


def test_who_gives_a_run_up_hears_which_nodes_stay_done(tmp_path: Path, api: RunApi) -> None:
    """And how to have them maintained again, as a new start of the run would leave them out."""
    play, cluster = "- import_playbook: virtops.kubevirt.abort\n", tmp_path / "files/cluster.kubeconfig"
    given = ("--check", "-e", "abort_run=kernel")
    told, status = run(tmp_path, play, *given, kubeconfig=cluster)
    assert (status, "was done with" in told) == (0, False), told
    for name in ("n7", "n8"):
        api.add_node(name, {MAINTAINED: "kernel"})
    told, status = run(tmp_path, play, *given, kubeconfig=cluster)
    assert status == 0, told
    assert "Run kernel was done with n7, n8." in told
    assert f"kubectl label nodes -l {MAINTAINED}=kernel {MAINTAINED}- --kubeconfig={cluster}" in told
    told, _status = run(
        tmp_path, play, *given, "-e", json.dumps({"abort_kubeconfig": str(cluster), "abort_context": "x"})
    )
    assert f"{MAINTAINED}- --kubeconfig={cluster} --context=x" in told


def test_the_readme_lets_go_of_the_run_in_the_end() -> None:
    release = readme()["post_tasks"][0]["virtops.kubevirt.maintenance_run"]
    told = {name: f"{{{{ plan_maintenance_plan.{name} }}}}" for name in ("run", "cluster_uid")}
    assert release == {**told, "state": "released"}
