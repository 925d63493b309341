# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run stays held whatever its playbook is at, and is free a moment after that has ended, with no process left."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Request
from unit.plugins.support.object_api import NAMESPACES
from unit.plugins.support.playbooks import write_kubeconfig
from unit.plugins.support.run_api import LEASES, RunApi, running

pytestmark = pytest.mark.playbook

# Seconds in which everything is over after ansible-playbook: two, and what a busy machine needs more. Less than the
# minute after which the same command is to go on.
SOON = 50.0
# In which a whole playbook is over, however slow the machine is.
WHOLE = 300.0


@pytest.fixture
def api(authority: Authority) -> Iterator[RunApi]:
    with running(authority.issue("server", "server", hosts=["127.0.0.1"])) as fake:
        yield fake


class Playbook:
    """An ansible-playbook that holds a run and then sleeps."""

    def __init__(self, folder: Path, api: RunApi, authority: Authority) -> None:
        self.run = f"run-{secrets.token_hex(6)}"
        self._api = api
        self._folder = folder
        self._kubeconfig = write_kubeconfig(folder, api, authority)

    @property
    def connection(self) -> dict[str, str]:
        return {"kubeconfig": self._kubeconfig}

    def command(self, *tasks: dict[str, Any]) -> list[str]:
        hold = {"virtops.kubevirt.maintenance_run": {"run": self.run, **self.connection}}
        play = {"hosts": "localhost", "gather_facts": False, "tasks": [hold, *tasks]}
        (self._folder / "play.yml").write_text(yaml.safe_dump([play]))
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        return [program, "-vvv", "-e", f"ansible_python_interpreter={sys.executable}", str(self._folder / "play.yml")]

    @property
    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
        home = {"ANSIBLE_HOME": str(self._folder / "home"), "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"]}
        return {**inherited, **home, "ANSIBLE_LOCALHOST_WARNING": "false"}

    @property
    def lease(self) -> Any:
        return self._api.run_lease(self.run)

    def renewers(self) -> list[int]:
        """The processes that renew this run, by what they say of themselves."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if f"holds run {self.run}\n" in path.read_text(errors="replace"):
                    found.append(int(path.parent.name))
        return found

    def is_over(self) -> bool:
        return self.lease is None and not self.renewers()


@pytest.fixture
def playbook(tmp_path: Path, api: RunApi, authority: Authority) -> Playbook:
    return Playbook(tmp_path, api, authority)


@pytest.fixture
def start(playbook: Playbook, tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """Start it, to sleep for so many seconds, and return when it holds the run."""
    begun: list[subprocess.Popen[bytes]] = []

    def run(seconds: int) -> subprocess.Popen[bytes]:
        command = playbook.command({"ansible.builtin.command": f"sleep {seconds}"})
        with (tmp_path / "output").open("wb") as output:
            process = subprocess.Popen(
                command, env=playbook.environment, stdout=output, stderr=output, start_new_session=True
            )
        begun.append(process)
        wait_until(lambda: playbook.lease is not None and _is_settled(playbook.renewers()), 60)
        return process

    yield run
    for process in begun:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_settled(renewers: list[int]) -> bool:
    """Whether there is one, and it has left the folder and the streams it was started with.

    What starts it ends meanwhile.
    """
    held = [f"/proc/{renewer}/{name}" for renewer in renewers for name in ("cwd", "fd/0", "fd/1", "fd/2")]
    try:
        return [str(Path(path).readlink()) for path in held] == ["/", *["/dev/null"] * 3]
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come about within {seconds} s"
        time.sleep(0.1)


def taken_by_another(playbook: Playbook) -> Any:
    """The Lease then."""
    lease = json.loads(json.dumps(playbook.lease))
    lease["spec"]["holderIdentity"] = f"{playbook.run}/other"
    lease["metadata"]["resourceVersion"] = "999"
    path = next(path for path in playbook._api.objects if path.endswith(playbook.run))
    playbook._api.objects[path] = lease
    return lease


def aborted_by_another(playbook: Playbook) -> None:
    """Its Lease is gone then."""
    path = next(path for path in playbook._api.objects if path.endswith(playbook.run))
    del playbook._api.objects[path]


def behind_another_cluster(playbook: Playbook) -> None:
    """Its address is: there is no such Lease."""
    aborted_by_another(playbook)
    playbook._api.objects[f"{NAMESPACES}/kube-system"]["metadata"]["uid"] = "uid-of-another"


def behind_a_proxy(playbook: Playbook) -> Any:
    """Which answers what is no Lease."""
    path = next(path for path in playbook._api.objects if path.endswith(playbook.run))
    playbook._api.faults[path] = lambda _request: Answer(200, {"page": "of a proxy"})
    return playbook.lease


def test_a_run_is_held_through_a_long_task(playbook: Playbook, start: Callable[..., Any], tmp_path: Path) -> None:
    process = start(13)
    first = playbook.lease["spec"]["renewTime"]
    (renewer,) = playbook.renewers()
    process.wait()
    assert process.returncode == 0
    wait_until(playbook.is_over, SOON)
    wait_until(lambda: not Path(f"/proc/{renewer}").exists(), SOON)  # nor a zombie
    renewed = [request.body["spec"]["renewTime"] for request in playbook._api.writes() if request.method == "PUT"]
    assert max(renewed) > first
    output = (tmp_path / "output").read_text()
    assert "secret" not in output
    assert "_invocation" not in output


def test_a_killed_playbook_frees_the_run(playbook: Playbook, start: Callable[..., Any]) -> None:
    process = start(60)
    process.kill()
    # Not waited for yet: a process that has ended and nobody has asked for is as dead.
    wait_until(playbook.is_over, SOON)


def test_a_lost_answer_to_the_renewer_is_news(playbook: Playbook, start: Callable[..., Any], api: RunApi) -> None:
    lost: list[Request] = []

    def lose(request: Request) -> Answer | None:
        if request.method != "PUT" or lost:
            return None
        lost.append(request)
        api._list(request)
        return SILENCE

    api.faults[f"{LEASES}/virtops-run-{playbook.run}"] = lose
    process = start(0)
    assert process.wait(WHOLE) == 0
    assert lost
    wait_until(playbook.is_over, SOON)


def test_the_renewer_holds_on_to_nothing(playbook: Playbook, start: Callable[..., Any]) -> None:
    start(60)
    (renewer,) = playbook.renewers()
    descriptors = {}
    for path in Path(f"/proc/{renewer}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            descriptors[path.name] = str(path.readlink())
    assert {descriptors[number] for number in "012"} == {"/dev/null"}
    assert not [target for target in descriptors.values() if target.startswith("pipe:")]
    assert os.getsid(renewer) not in (os.getsid(0), renewer)
    assert "secret" not in Path(f"/proc/{renewer}/cmdline").read_text()


def test_who_slept_does_not_take_back_what_another_holds(playbook: Playbook, start: Callable[..., Any]) -> None:
    process = start(60)
    (renewer,) = playbook.renewers()
    os.kill(renewer, signal.SIGSTOP)
    lease = taken_by_another(playbook)
    process.kill()
    os.kill(renewer, signal.SIGCONT)
    wait_until(lambda: not playbook.renewers(), SOON)
    assert playbook.lease == lease


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("lose", "words"),
    [
        (taken_by_another, "this invocation does not hold the run any more, it is held by"),
        (aborted_by_another, "this invocation does not hold the run any more, nobody holds it"),
        (
            behind_a_proxy,
            "its run cannot be held any more, so that somebody else may take it; what renews it has failed:",
        ),
        (behind_another_cluster, "its run cannot be held at {url} any more; it is another cluster"),
    ],
)
def test_a_playbook_whose_run_is_lost_does_nothing_more(
    playbook: Playbook, start: Callable[..., Any], tmp_path: Path, lose: Callable[[Playbook], Any], words: str
) -> None:
    """Its next task might restart a node that the other one has given back."""
    process = start(600)
    lease = lose(playbook)
    assert process.wait(SOON) == -signal.SIGTERM
    output = (tmp_path / "output").read_text()
    assert f"ansible-playbook is ended, as {words.format(url=playbook._api.url)}" in output
    wait_until(lambda: not playbook.renewers(), SOON)
    assert playbook.lease == lease


def test_a_playbook_goes_on_after_its_run(playbook: Playbook, tmp_path: Path) -> None:
    """Also if somebody else holds the run by then: it has let go of it, and nobody is left who would end it."""
    release = {"virtops.kubevirt.maintenance_run": {"run": playbook.run, "state": "released", **playbook.connection}}
    released, go_on = tmp_path / "released", tmp_path / "go on"
    touch = {"ansible.builtin.file": {"path": str(released), "state": "touch"}}
    wait = {"ansible.builtin.wait_for": {"path": str(go_on)}}
    with subprocess.Popen(
        playbook.command(release, touch, wait), env=playbook.environment, stdout=subprocess.DEVNULL
    ) as process:
        wait_until(released.exists, WHOLE)
        assert not playbook.renewers()
        go_on.touch()
        assert process.wait(WHOLE) == 0


def test_a_reader_that_leaves_does_not_hang_it(playbook: Playbook) -> None:
    """As with `| head -1`."""
    command = playbook.command({"ansible.builtin.command": "sleep 1"})
    with subprocess.Popen(
        command, env=playbook.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
        process.wait(WHOLE)
    wait_until(playbook.is_over, SOON)


def test_what_reads_to_the_end_is_not_kept_waiting(playbook: Playbook) -> None:
    done = subprocess.run(playbook.command(), env=playbook.environment, capture_output=True, timeout=WHOLE, check=False)
    assert done.returncode == 0, done.stdout
    wait_until(playbook.is_over, SOON)
