# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is taken for a run only while that is this invocation's, and only in the cluster that is meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, Protocol

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import (
    Client,
    connect_by,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import run_lease
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.renewer import Renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import require_run
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.cordon import CORDON_NOTE, KEPT, MAINTAINED
from ansible_collections.virtops.kubevirt.plugins.modules.node_maintenance import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Request, refusal
from unit.plugins.support.modules import ModuleRunner, Result
from unit.plugins.support.object_api import NODES
from unit.plugins.support.run_api import CLUSTER, LEASES, RunApi, running

LEASE = f"{LEASES}/node-n1"
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
NOW = datetime.now(timezone.utc)


class Maintain(Protocol):
    """Run the module on node n1 for run `kernel`, invocation `a1`; whatever is given replaces an argument."""

    def __call__(self, *, check: bool = False, diff: bool = False, **arguments: Any) -> Result: ...


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    """A node that nobody has taken, and a run that invocation `a1` holds."""
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        fake.add_node("n1")
        fake.hold_run("a1", renewed=NOW.strftime(TIME))
        yield fake


@pytest.fixture
def client(api: RunApi, connection: dict[str, str]) -> Client:
    return connect_by(connection, 5)


@pytest.fixture
def maintain(run_module: ModuleRunner, connection: dict[str, Any]) -> Maintain:
    return partial(
        run_module, main, **{**connection, "name": "n1", "owner": "kernel", "run": "kernel", "invocation": "a1"}
    )


def test_the_holder_takes_a_node_for_the_run(maintain: Maintain, api: RunApi) -> None:
    assert maintain(cluster_uid=CLUSTER)["changed"]
    assert api.objects[LEASE]["metadata"]["labels"] == {"virtops.kubevirt/run": "kernel"}


@pytest.mark.parametrize("state", ["cordoned", "uncordoned"])
def test_who_has_lost_the_run_changes_nothing(maintain: Maintain, api: RunApi, state: str) -> None:
    maintain()
    before, writes = api.node("n1"), len(api.writes())
    api.hold_run("b2")
    result = maintain(state=state)
    assert (result["error"]["reason"], result["error"]["holder"]["invocation"]) == ("RunLost", "b2")
    assert "it is held by invocation b2 (jane@elsewhere, process 4711)" in result["msg"]
    assert (api.node("n1"), len(api.writes())) == (before, writes)


def _in_vain(_request: Request) -> Answer:
    """The answer of who wrote quicker."""
    return refusal(409, "Conflict", "the object has been modified")


def _unheard(_request: Request) -> Answer:
    return SILENCE


@pytest.mark.parametrize("state", ["cordoned", "uncordoned"])
@pytest.mark.parametrize("answer", [_in_vain, _unheard])
def test_who_loses_the_run_while_it_writes_does_not_write_again(
    maintain: Maintain,
    api: RunApi,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    answer: Callable[[Request], Answer],
) -> None:
    """Its network is away for a minute: the other has the node by the same name, and gets on with its maintenance."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    monkeypatch.setattr(persistence, "READING", 60.0)
    if state == "uncordoned":
        maintain()
    before = api.node("n1")

    def lose(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        api.hold_run("b2")
        return answer(request)

    api.faults[f"{NODES}/n1"] = lose
    result = maintain(state=state)
    assert (result["error"]["reason"], result["error"]["holder"]["invocation"]) == ("RunLost", "b2")
    assert (api.node("n1"), LEASE in api.objects) == (before, True), "the other goes by the same name"
    assert [write.path for write in api.writes()].count(f"{NODES}/n1") == (2 if state == "uncordoned" else 1)


def test_who_stands_still_before_it_gives_a_node_back_does_not(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its last look and its write another one goes on with the run, and counts on the cordon."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    maintain(reason="New kernel")
    before = api.node("n1")
    taken: list[Result] = []

    def stand_still(request: Request) -> Answer | None:
        if request.method == "PATCH":
            del api.faults[f"{NODES}/n1"]
            api.hold_run("b2", renewed=NOW.strftime(TIME))
            taken.append(maintain(invocation="b2", diff=True))
        return None

    api.faults[f"{NODES}/n1"] = stand_still
    result = maintain(state="uncordoned", maintained=True)
    assert (result["error"]["reason"], result["error"]["holder"]["invocation"]) == ("RunLost", "b2")
    assert api.node("n1")["spec"] == before["spec"] == {"unschedulable": True}
    assert LEASE in api.objects
    (other,) = taken
    assert not other["changed"], "that another invocation has it is no change, as that its Lease lasts longer"
    assert other["diff"]["before"] == other["diff"]["after"]
    assert other["cordon"]["reason"] == "New kernel"


def test_who_stands_still_is_not_done_with_a_node_that_others_have_cordoned(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever goes on with the run has yet to maintain it, though no cordon is to be lost."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    _cordoned_by_others(maintain, api)
    maintain(foreign_cordon="keep")

    def stand_still(request: Request) -> Answer | None:
        if request.method == "PATCH":
            del api.faults[f"{NODES}/n1"]
            api.hold_run("b2", renewed=NOW.strftime(TIME))
            assert not maintain(invocation="b2", foreign_cordon="keep").get("failed")
        return None

    api.faults[f"{NODES}/n1"] = stand_still
    result = maintain(state="uncordoned", maintained=True, foreign_cordon="keep")
    assert (result["error"]["reason"], result["error"]["holder"]["invocation"]) == ("RunLost", "b2")
    assert MAINTAINED not in api.node("n1")["metadata"].get("labels", {})
    assert LEASE in api.objects


def test_who_is_outrun_while_it_gives_a_node_back_leaves_the_other_its_lease(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That bears the name of the run, whichever invocation of it has taken it anew."""
    monkeypatch.setattr(run_lease, "FRESH", 0.0)
    maintain()

    def outrun(request: Request) -> None:
        if request.method == "DELETE":
            del api.faults[LEASE]
            api.hold_run("b2", renewed=NOW.strftime(TIME))
            assert maintain(invocation="b2")["changed"]

    api.faults[LEASE] = outrun
    result = maintain(state="uncordoned")
    assert (result["error"]["reason"], result["error"]["holder"]["invocation"]) == ("RunLost", "b2")
    assert (api.node("n1")["spec"], LEASE in api.objects) == ({"unschedulable": True}, True)


def _cordoned_by_others(maintain: Maintain, api: RunApi) -> None:
    """Who are done with their Lease."""
    maintain(owner="others", run=None, invocation=None)
    del api.objects[LEASE]


def _marks(api: RunApi) -> list[str | None]:
    """Which invocation each write of the node has named."""
    notes = (write.body["metadata"]["annotations"] for write in api.writes() if write.path == f"{NODES}/n1")
    return [json.loads(note[CORDON_NOTE])["invocation"] for note in notes]


def test_each_invocation_marks_a_node_once(maintain: Maintain, api: RunApi) -> None:
    first = maintain()
    for invocation in ("a1", "b2", "b2"):
        api.hold_run(invocation, renewed=NOW.strftime(TIME))
        again = maintain(invocation=invocation)
        assert (again["changed"], again["cordon"]) == (False, first["cordon"]), "since when is told as ever"
    assert not maintain(run=None, invocation=None)["changed"]
    assert _marks(api) == ["a1", "b2"]


def test_a_dry_run_leaves_the_mark_of_another_invocation(maintain: Maintain, api: RunApi) -> None:
    maintain()
    before = api.node("n1")
    assert not maintain(invocation="b2", check=True)["changed"]
    assert api.node("n1") == before


def test_a_cordon_of_others_is_not_marked_by_the_run(maintain: Maintain, api: RunApi) -> None:
    """Beside it stands who has the node meanwhile, for as long as that is so."""
    _cordoned_by_others(maintain, api)
    cordoned = deepcopy(api.node("n1"))
    marks = cordoned["metadata"]["annotations"]
    writes = len(api.writes())
    for invocation in ("a1", "a1", "b2"):
        api.hold_run(invocation, renewed=NOW.strftime(TIME))
        assert maintain(invocation=invocation, foreign_cordon="keep")["cordon"]["by"] == "others"
        now = api.node("n1")
        assert (now["spec"], now["metadata"]["annotations"].items() >= marks.items()) == (cordoned["spec"], True)
        assert json.loads(now["metadata"]["annotations"][KEPT])["invocation"] == invocation
    assert [write.path for write in api.writes()[writes:]].count(f"{NODES}/n1") == 2
    assert maintain(invocation="b2", state="uncordoned", foreign_cordon="keep")["changed"]
    assert (api.node("n1")["spec"], api.node("n1")["metadata"]["annotations"]) == (cordoned["spec"], marks)


def test_a_cordon_that_others_have_lifted_is_made_anew_and_marked(maintain: Maintain, api: RunApi) -> None:
    _cordoned_by_others(maintain, api)
    maintain(foreign_cordon="keep")
    del api.node("n1")["spec"]["unschedulable"]
    assert maintain(foreign_cordon="keep")["cordon"]["by"] == "kernel"
    maintain(state="uncordoned", foreign_cordon="keep")
    assert api.node("n1")["metadata"]["annotations"] == {}


def test_outside_of_a_run_nothing_is_written_beside_a_cordon_of_others(maintain: Maintain, api: RunApi) -> None:
    _cordoned_by_others(maintain, api)
    before = deepcopy(api.node("n1"))
    maintain(run=None, invocation=None, foreign_cordon="keep")
    assert api.node("n1") == before


def test_a_run_that_nobody_holds_is_lost(maintain: Maintain, api: RunApi) -> None:
    api.objects.pop(f"{LEASES}/virtops-run-kernel")
    result = maintain()
    assert (result["error"]["reason"], "holder" in result["error"]) == ("RunLost", False)
    assert "nobody holds it" in result["msg"]


def test_check_mode_needs_no_run(maintain: Maintain, api: RunApi) -> None:
    api.hold_run("b2")
    assert maintain(check=True)["changed"]


def test_another_cluster_is_refused(maintain: Maintain, api: RunApi) -> None:
    result = maintain(cluster_uid="uid-of-before", check=True)
    assert result["error"]["reason"] == "OtherCluster"
    assert f"its uid is {CLUSTER}, not uid-of-before" in result["msg"]
    assert api.writes() == []


def test_a_node_that_is_taken_without_the_run_keeps_its_label(maintain: Maintain, api: RunApi) -> None:
    maintain()
    maintain(run=None, invocation=None)
    assert api.objects[LEASE]["metadata"]["labels"] == {"virtops.kubevirt/run": "kernel"}
    api.objects[LEASE]["spec"]["renewTime"] = "2020-01-01T00:00:00.000000Z"
    maintain(owner="other", run=None, invocation=None, foreign_cordon="keep")
    assert api.objects[LEASE]["metadata"]["labels"] == {}, "it is another's now"


def _do_without_an_answer(api: RunApi, request: Request) -> Answer | None:
    if request.method == "GET":
        return None
    api._list(request)
    return SILENCE


@pytest.mark.parametrize("answered", [True, False])
def test_the_run_is_done_with_a_node_in_the_write_that_gives_it_back(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    monkeypatch.setattr(persistence, "READING", 60.0)
    maintain()
    began = len(api.writes())
    if not answered:
        api.faults[f"{NODES}/n1"] = partial(_do_without_an_answer, api)
    given_back = maintain(state="uncordoned", maintained=True, diff=True)
    assert (given_back["changed"], given_back["diff"]["after"]["maintained"]) == (True, "kernel")
    assert api.node("n1")["metadata"]["labels"] == {MAINTAINED: "kernel"}
    assert [write.path for write in api.writes()[began:]] == [f"{NODES}/n1", LEASE]
    assert not maintain(state="uncordoned", maintained=True)["changed"]


@pytest.mark.parametrize("is_done", [True, False])
def test_a_node_that_others_have_cordoned_is_taken_and_left_once_though_answers_are_lost(
    maintain: Maintain, api: RunApi, monkeypatch: pytest.MonkeyPatch, *, is_done: bool
) -> None:
    monkeypatch.setattr(persistence, "READING", 60.0)
    _cordoned_by_others(maintain, api)

    def lose(request: Request) -> Answer | None:
        if request.method == "GET":
            return None
        del api.faults[f"{NODES}/n1"]
        return _do_without_an_answer(api, request) if is_done else SILENCE

    for state, is_marked in (("cordoned", True), ("uncordoned", False)):
        began = len(api.writes())
        api.faults[f"{NODES}/n1"] = lose
        assert maintain(state=state, foreign_cordon="keep")["changed"]
        assert (KEPT in api.node("n1")["metadata"]["annotations"]) is is_marked
        assert [write.path for write in api.writes()[began:]].count(f"{NODES}/n1") == (1 if is_done else 2)
        assert not maintain(state=state, foreign_cordon="keep")["changed"]
    assert api.node("n1")["spec"] == {"unschedulable": True}


def test_the_mark_of_others_stays_on_a_node_that_the_run_is_done_with(maintain: Maintain, api: RunApi) -> None:
    maintain(owner="others", run=None, invocation=None)
    del api.objects[LEASE]  # its time is over
    before = api.node("n1")["metadata"]["annotations"]
    assert maintain(state="uncordoned", maintained=True, foreign_cordon="keep")["cordon"]["by"] == "others"
    assert api.node("n1")["metadata"]["annotations"] == before
    assert api.node("n1")["metadata"]["labels"] == {MAINTAINED: "kernel"}


def test_the_run_is_done_with_a_node_that_somebody_has_uncordoned(maintain: Maintain, api: RunApi) -> None:
    assert maintain(state="uncordoned", maintained=True, check=True)["changed"]
    assert maintain(state="uncordoned", maintained=True)["changed"]
    assert api.node("n1")["metadata"]["labels"] == {MAINTAINED: "kernel"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"owner": "us"}, "owner is us, but run is kernel"),
        ({"run": "a b", "owner": "a b"}, "run is 'a b', but it becomes the value of a label"),
        ({"run": None}, "invocation is given, but no run"),
        ({"maintained": True}, "maintained is true, which is for a node that is given back"),
    ],
)
def test_mistakes(maintain: Maintain, api: RunApi, arguments: dict[str, Any], words: str) -> None:
    assert words in maintain(**arguments)["msg"]
    assert api.requests == []


def test_a_look_of_a_moment_ago_is_good_enough(client: Client, api: RunApi) -> None:
    hold = require_run(client, "kernel", "a1", "medik8s-leases")
    api.hold_run("b2")
    hold.require()
    with pytest.raises(Failure, match="this invocation does not hold the run any more"):
        require_run(client, "kernel", "a1", "medik8s-leases")


def test_who_looks_renews_what_nobody_renews(client: Client, api: RunApi) -> None:
    api.hold_run("a1", renewed=(NOW - timedelta(seconds=25)).strftime(TIME))
    require_run(client, "kernel", "a1", "medik8s-leases")
    assert api.run_lease()["spec"]["renewTime"] >= NOW.strftime(TIME)
    about = api.run_lease()["metadata"]["annotations"]["virtops.kubevirt/holder"]
    assert "elsewhere" in about, "it is still told where the run is held"


@pytest.mark.parametrize(
    ("holder", "run", "age", "renewed"),
    [
        ("kernel", "kernel", 10, False),
        ("kernel", "kernel", 40, True),
        ("kernel", "kernel", 400, True),
        ("kernel", "kernel", -40, True),  # the clock has jumped
        ("other", "kernel", 40, False),
        ("kernel", "another", 40, False),
    ],
)
def test_leases_of_nodes_are_renewed_with_the_run(
    maintain: Maintain, client: Client, api: RunApi, holder: str, run: str, age: int, renewed: bool
) -> None:
    maintain(lease_duration=90)
    lease = api.objects[LEASE]
    written = (NOW - timedelta(seconds=age)).strftime(TIME)
    lease["spec"] |= {"holderIdentity": holder, "renewTime": written}
    lease["metadata"]["labels"] = {"virtops.kubevirt/run": run}
    Renewer("kernel", "a1", "medik8s-leases", CLUSTER, Process(1, "", ""), client).renew_nodes(NOW)
    after = api.objects[LEASE]["spec"]
    assert after["renewTime"] == (NOW.strftime(TIME) if renewed else written)
    assert (after["holderIdentity"], after["leaseDurationSeconds"]) == (holder, 90)


def test_a_lease_that_says_nothing_is_not_renewed(client: Client, api: RunApi) -> None:
    about = {"name": "node-n1", "namespace": "medik8s-leases", "labels": {"virtops.kubevirt/run": "kernel"}}
    api.objects[LEASE] = {"metadata": about}
    Renewer("kernel", "a1", "medik8s-leases", CLUSTER, Process(1, "", ""), client).renew_nodes(NOW)
    assert api.objects[LEASE] == {"metadata": about}
