# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that renews a run finds its credentials wherever it was begun, and tells why it has nothing to renew."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import clock, persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.client import connect_by
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.failure import Failure
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import Persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.processes import Process
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs import renewer
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.run_lease import RunHold
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.leases import TIME, Invocation

from testbed.pki import Authority, write_kubeconfig
from unit.plugins.support.fake_api import SILENCE, Answer, Fault, Request, refusal
from unit.plugins.support.modules import isolate
from unit.plugins.support.object_api import NAMESPACES
from unit.plugins.support.run_api import CLUSTER, LEASES, RunApi, running

LEASE, SYSTEM = f"{LEASES}/virtops-run-kernel", f"{NAMESPACES}/kube-system"
# Of what comes about at once, on a busy machine.
SOON = 60.0


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


@pytest.fixture
def playbook(api: RunApi) -> Iterator[Process]:
    """What the run is renewed for; nothing is left of it afterwards."""
    with subprocess.Popen(["sleep", "1000"]) as running:
        yield Process.of(running.pid)
        api.faults.clear()
        api.token = ""
        running.kill()


@pytest.mark.parametrize("known_by", ["option", "K8S_AUTH_KUBECONFIG", "KUBECONFIG"])
def test_a_kubeconfig_is_found_from_elsewhere_too(
    api: RunApi,
    authority: Authority,
    playbook: Process,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    known_by: str,
) -> None:
    isolate(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    kubeconfig = Path("config")
    write_kubeconfig(kubeconfig, api.url, authority.cert, {"token": "first"})
    api.token = "first"  # guards nothing
    hold = RunHold(connect_by({"kubeconfig": "config"}, SOON), "kernel", Invocation("a1"), "medik8s-leases")
    hold.take(0.0)
    found = threading.Event()

    def run_out(request: Request) -> Answer | None:
        """With the first renewal, by the process that has begun."""
        if request.method == "PUT" and api.token == "first":
            write_kubeconfig(kubeconfig, api.url, authority.cert, {"token": "second"})
            answer = api._list(request)
            api.token = "second"
            return answer
        if request.method == "PUT":
            found.set()
        return None

    api.faults[LEASE] = run_out
    options = {"kubeconfig": "config"} if known_by == "option" else {}
    if not options:
        monkeypatch.setenv(known_by, f"{os.pathsep}config" if known_by == "KUBECONFIG" else "config")
    renewer.start(options, hold, CLUSTER, playbook, SOON)
    assert found.wait(SOON)


@pytest.fixture
def renewing(api: RunApi, connection: dict[str, str]) -> renewer.Renewer:
    """In this process, of a run that is held."""
    client = connect_by(connection, SOON)
    RunHold(client, "kernel", Invocation("a1"), "medik8s-leases").take(0.0)
    found = renewer.Renewer("kernel", "a1", "medik8s-leases", CLUSTER, Process.of(os.getpid()), client)
    assert found.begin()
    return found


def test_another_cluster_may_have_a_run_of_that_name(renewing: renewer.Renewer, api: RunApi) -> None:
    api.hold_run("b2")
    api.objects[SYSTEM]["metadata"]["uid"] = "uid-of-another"
    renewing.work()
    assert renewing.lost == (
        f"its run cannot be held at {api.url} any more; it is another cluster than the one that was planned for: "
        "its uid is uid-of-another, not uid-of-the-cluster"
    )


@pytest.mark.parametrize("status", [403, 503])
def test_who_cannot_see_which_cluster_it_is_has_lost_the_run_all_the_same(
    renewing: renewer.Renewer, api: RunApi, status: int
) -> None:
    api.hold_run("b2")
    api.faults[SYSTEM] = lambda _request: refusal(status, "Reason", "not now")
    renewing.work()
    assert renewing.lost.startswith("this invocation does not hold the run any more, it is held by invocation b2")


def test_after_a_sleep_it_looks_at_once(
    renewing: renewer.Renewer, api: RunApi, playbook: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have taken the run meanwhile. The next time to renew never comes here."""
    never = 10.0**6
    monkeypatch.setattr(renewer, "RENEWAL", never)
    monkeypatch.setattr(renewer, "_POLL", 0.01)
    taken, told = threading.Event(), list[float]()

    def take_it_then(request: Request) -> Answer | None:
        if request.method != "PUT":
            return None
        answer = api._list(request)
        api.hold_run("b2")
        taken.set()
        return answer

    def now() -> float:
        if threading.current_thread() is not accompanying:
            return 0.0
        told.append(2 * never if told and taken.is_set() else 0.0)
        return told[-1]

    api.faults[LEASE] = take_it_then
    monkeypatch.setattr(renewer, "clock", SimpleNamespace(now=now))
    accompanying = threading.Thread(target=renewer._accompany, args=(renewing, playbook), daemon=True)
    accompanying.start()
    accompanying.join(SOON)
    assert not accompanying.is_alive(), "it did not look again"
    assert "it is held by invocation b2" in renewing.lost


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that pass, in place of those of the clock; nobody waits for anything."""
    seconds = [0.0]
    monkeypatch.setattr(clock, "now", lambda: sum(seconds))
    monkeypatch.setattr(renewer, "_RETRY", 0.0)
    return seconds


FORBIDDEN = refusal(403, "Forbidden", "the lease is none of yours")


@pytest.mark.parametrize(
    ("answer", "words"),
    [(refusal(401, "Unauthorized", "Who is that?"), "Who is that?"), (FORBIDDEN, "the lease is none of yours")],
)
def test_a_run_that_may_not_be_renewed_for_its_time_is_lost(
    renewing: renewer.Renewer, api: RunApi, passed: list[float], answer: Answer, words: str
) -> None:
    asked: list[float] = []

    def refuse(_request: Request) -> Answer:
        asked.append(sum(passed))
        passed.append(4.0)
        if sum(passed) > 200:
            renewing.end()
        return answer

    api.faults[LEASE] = refuse
    renewing.work()
    assert renewing.lost.startswith(
        f"its run cannot be held at {api.url} any more, so that somebody else may take it; for "
    )
    assert "for 32 s it has failed to read lease medik8s-leases/virtops-run-kernel: " in renewing.lost
    assert renewing.lost.endswith(words)
    assert 28 <= asked[-1] <= 40


def test_a_run_that_may_be_renewed_again_in_time_is_none(
    renewing: renewer.Renewer, api: RunApi, passed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that happens."""
    monkeypatch.setattr(renewer, "RENEWAL", 0.0)
    requests: list[str] = []

    def refuse_at_times(request: Request) -> Answer | None:
        requests.append(request.method)
        passed.append(4.0)
        if len(requests) > 60:
            renewing.end()
        return FORBIDDEN if len(requests) % 10 < 5 else None

    api.faults[LEASE] = refuse_at_times
    renewing.work()
    assert not renewing.lost
    assert sum(passed) > 200


def test_a_server_that_is_away_is_asked_on(renewing: renewer.Renewer, api: RunApi, passed: list[float]) -> None:
    """Nobody can tell it from a network that is, behind which others go on."""
    asked: list[float] = []

    def be_away(_request: Request) -> Answer:
        asked.append(sum(passed))
        passed.append(40.0)
        if len(asked) == 10:
            renewing.end()
        return refusal(503, "ServiceUnavailable", "not now")

    api.faults[LEASE] = be_away
    renewing.work()
    assert asked[9] > 300
    assert not renewing.lost


def test_the_last_word_has_a_second_try(
    api: RunApi, connection: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the time is long over that there was to begin; the next start would have to wait."""
    monkeypatch.setattr(persistence, "READING", SOON)
    monkeypatch.setattr(renewer, "_LAST_WORD", SOON)
    client = connect_by(connection, SOON, Persistence(0.0))
    RunHold(client, "kernel", Invocation("a1"), "medik8s-leases").take(0.0)
    renewing = renewer.Renewer("kernel", "a1", "medik8s-leases", CLUSTER, Process.of(os.getpid()), client)
    assert renewing.begin()
    busy = [refusal(503, "ServiceUnavailable", "not now")]

    def renewed(request: Request) -> Answer | None:
        if request.method == "PUT":
            renewing.end()
            return None
        return busy.pop() if busy and renewing._is_over else None

    api.faults[LEASE] = renewed
    renewing.work()
    assert (busy, LEASE in api.objects) == ([], False)


def test_a_renewal_that_does_not_begin_tells_no_password(
    api: RunApi, connection: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "READING", 0.1)
    hold = RunHold(connect_by(connection, SOON), "kernel", Invocation("a1"), "medik8s-leases")
    with pytest.raises(Failure, match="is to renew its Lease did not begin") as told:
        renewer.start({"host": "https://joe:a-secret@127.0.0.1:1"}, hold, CLUSTER, Process.of(os.getpid()), SOON)
    assert "a-secret" not in f"{told.value}{told.value.to_json()}"


@pytest.mark.parametrize(
    ("answers", "is_lost"),
    [
        ([(FORBIDDEN, 20.0), (SILENCE, 120.0), (FORBIDDEN, 20.0), (None, 0.0)], False),
        ([(FORBIDDEN, 20.0), (refusal(503, "ServiceUnavailable", "no"), 120.0), (FORBIDDEN, 20.0), (None, 0.0)], False),
        ([(FORBIDDEN, 20.0), (SILENCE, 5.0), (FORBIDDEN, 20.0), (SILENCE, 5.0), (FORBIDDEN, 20.0)], True),
    ],
    ids=["away for long", "in trouble for long", "away for a moment"],
)
def test_refusals_count_together_unless_the_server_was_away_for_long(
    renewing: renewer.Renewer,
    api: RunApi,
    passed: list[float],
    answers: list[tuple[Answer | None, float]],
    is_lost: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(persistence, "BRIEF", 0.0)
    course = iter(answers)

    def answer(_request: Request) -> Answer | None:
        given, seconds = next(course, (None, 0.0))
        passed.append(seconds)
        if given is None:
            renewing.end()
        return given

    api.faults[LEASE] = answer
    renewing.work()
    assert bool(renewing.lost) is is_lost


@pytest.mark.parametrize(
    ("reason", "is_lost"),
    [("CertificateInvalid", True), ("TlsFailed", True), ("NameUnresolved", False), ("Timeout", False)],
)
def test_only_a_server_that_gives_no_answer_is_asked_on(
    renewing: renewer.Renewer, passed: list[float], reason: str, is_lost: bool
) -> None:
    for _try in range(4):
        renewing._failed(Failure("renew it", "server", "no", "Look.", unanswered=True, unsent=True, reason=reason))
        passed.append(12.0)
    assert bool(renewing.lost) is is_lost


def test_an_answer_that_nobody_expects_is_told(renewing: renewer.Renewer, api: RunApi) -> None:
    api.faults[LEASE] = lambda _request: Answer(200, {"page": "of a proxy"})
    with pytest.raises(KeyError):
        renewing.work()
    assert renewing.lost == (
        "its run cannot be held any more, so that somebody else may take it; what renews it has failed: "
        "KeyError('metadata')"
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda _request: FORBIDDEN, "the lease is none of yours"),
        (lambda _request: Answer(200, {"page": "of a proxy"}), "what renews it has failed: KeyError('metadata')"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # what ends a thread is told
def test_a_playbook_whose_run_cannot_be_held_is_ended(
    renewing: renewer.Renewer, api: RunApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Fault, words: str
) -> None:
    monkeypatch.setattr(renewer, "DURATION", 0.0)
    monkeypatch.setattr(renewer, "_RETRY", 0.0)
    api.faults[LEASE] = fault
    output = tmp_path / "output"
    with output.open("w") as stderr, subprocess.Popen(["sleep", "1000"], stderr=stderr) as playbook:
        renewer._accompany(renewing, Process.of(playbook.pid))
        if not renewing.lost:
            playbook.kill()
        ended = playbook.wait(SOON)
    assert ended == -signal.SIGTERM
    assert output.read_text().startswith("ansible-playbook is ended, as its run cannot be held")
    assert words in output.read_text()


def test_the_run_is_renewed_between_its_nodes(renewing: renewer.Renewer, api: RunApi, passed: list[float]) -> None:
    """A server may take its time for each of them."""
    names = ("n1", "n2", "n3")
    due = (datetime.now(timezone.utc) - timedelta(seconds=40)).strftime(TIME)
    renewed, ages = [0.0], list[float]()

    def note(request: Request) -> Answer | None:
        if request.method == "PUT":
            renewed.append(sum(passed))
        return None

    def take_time(request: Request) -> Answer | None:
        if request.method == "PUT":
            passed.append(9.0)
            ages.append(sum(passed) - renewed[-1])
            if len(ages) == len(names):
                renewing.end()
        return None

    api.faults[LEASE] = note
    for name in names:
        path = f"{LEASES}/node-{name}"
        about = {"name": f"node-{name}", "namespace": "medik8s-leases", "resourceVersion": "1"}
        spec = {"holderIdentity": "kernel", "leaseDurationSeconds": 90, "renewTime": due}
        api.objects[path] = {"metadata": {**about, "labels": {"virtops.kubevirt/run": "kernel"}}, "spec": spec}
        api.faults[path] = take_time
    renewing.work()
    assert len(ages) == len(names)
    assert max(ages) <= 20
    assert all(api.objects[f"{LEASES}/node-{name}"]["spec"]["renewTime"] > due for name in names)
