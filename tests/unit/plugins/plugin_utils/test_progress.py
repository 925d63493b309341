# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The listening side, in a real ansible-playbook: several hosts at once, killed modules, readers that go away."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import ansible_collections
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress
from ansible_collections.virtops.kubevirt.plugins.plugin_utils import _progress

from unit.plugins.module_utils._execution.standings import standing
from unit.plugins.support.listener import listener

pytestmark = pytest.mark.playbook

HOSTS = ("a", "b", "c")
NUMBER = 8
# A play ends long before, unless it hangs.
SECONDS = 300
PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")

# A module of a collection of its own, which tells what its task wants, and ends as the task wants.
MODULE = """
import json, os, pathlib, signal, time
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress

options = {name: {"type": "str"} for name in ("about", "text", "meeting")}
options |= {"number": {"type": "int"}, "killed": {"type": "bool"}, "standing": {"type": "json"}}
module = AnsibleModule({**options, "_progress": {"type": "str"}}, supports_check_mode=True)
progress = Progress.of(module.params, module.params["about"])
for number in range(module.params["number"]):
    progress.tell(f"{module.params['text']} {number}")
    progress.detail(f"detail {number}")
    if module.params["standing"]:
        given = json.loads(module.params["standing"])
        progress.stands(Standing(**{**given, "node": module.params["about"], "gone": number + 1}))
    if number == 0 and module.params["meeting"]:
        folder = pathlib.Path(module.params["meeting"])
        (folder / module.params["about"]).touch()
        while len(list(folder.iterdir())) < 4:
            time.sleep(0.02)
    time.sleep(0.02)
if module.params["killed"]:
    os.kill(os.getpid(), signal.SIGKILL)
module.exit_json(changed=False, checked=module.check_mode, fifo=module.params["_progress"])
"""
# Where the collections are.
TREE = Path(next(iter(ansible_collections.__path__))).parent
# Its totals come with every change.
ACTION = """
from ansible_collections.virtops.kubevirt.plugins.module_utils._execution import standing
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._cluster_action import ClusterAction as ActionModule
standing.TOTALS_EVERY = 0.0
"""


@pytest.fixture
def teller(tmp_path: Path) -> Path:
    """A folder for ANSIBLE_COLLECTIONS_PATH with the module `proof.teller.tell`."""
    plugins = tmp_path / "collections/ansible_collections/proof/teller/plugins"
    for kind, content in (("modules", MODULE), ("action", ACTION)):
        (plugins / kind).mkdir(parents=True)
        (plugins / kind / "tell.py").write_text(content)
    return tmp_path / "collections"


@pytest.fixture
def begin(tmp_path: Path, teller: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begin a command that runs Ansible, and see to it that nothing of it is left."""
    begun: list[tuple[subprocess.Popen[str], threading.Timer]] = []

    def run(*command: str | Path, output: str, temporary: Path) -> subprocess.Popen[str]:
        settings = {
            "ANSIBLE_HOME": str(tmp_path / "home"),
            "ANSIBLE_LOCAL_TEMP": str(temporary),
            "ANSIBLE_REMOTE_TEMP": str(temporary),
            "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join([str(TREE), str(teller)]),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "PATH": f"{PLAYBOOK.parent}{os.pathsep}{os.environ['PATH']}",
        }
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_"))}
        process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {output}', "sh", *command],
            env={**inherited, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        # Whoever waits for a play that hangs gets on.
        timer = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        begun.append((process, timer))
        return process

    yield run
    for process, timer in begun:
        timer.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def play(folder: Path, **arguments: Any) -> Path:
    """The file of a playbook of one task."""
    task = {"about": "{{ inventory_hostname }}", "number": NUMBER, "text": "line", **arguments}
    tasks = [{"proof.teller.tell": task, "delegate_to": "localhost", "register": "told"}]
    path = folder / "play.yml"
    path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    return path


@pytest.fixture
def start(tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]) -> Callable[..., subprocess.Popen[str]]:
    """Begin a play of one task."""

    def run(
        *options: str, output: str = "", temporary: Path = tmp_path / "home/tmp", **arguments: Any
    ) -> subprocess.Popen[str]:
        """output: where a shell is to send what the test does not get. temporary: for Ansible's own folders."""
        given = ("-i", f"{','.join(HOSTS)},", "-e", f"ansible_python_interpreter={sys.executable}", *options)
        return begin(PLAYBOOK, *given, play(tmp_path, **arguments), output=output, temporary=temporary)

    return run


def test_lines_of_three_hosts_come_in_order_while_they_happen(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    process, told, others = start(meeting=str(meeting)), list[str](), list[str]()
    assert process.stdout
    assert process.stderr
    for line in map(str.rstrip, process.stderr):
        (told if ": line" in line else others).append(line)
        if len(told) == len(HOSTS):
            (meeting / "who reads along").touch()
    out = process.stdout.read()
    for host in HOSTS:
        assert [line for line in told if line.startswith(host)] == [f"{host}: line {n}" for n in range(NUMBER)]
    first_end = next(number for number, line in enumerate(told) if line.endswith(f"line {NUMBER - 1}"))
    assert {line[0] for line in told[:first_end]} == set(HOSTS)
    assert not [line for line in others if "detail" in line]
    assert out.count("ok:") == len(HOSTS)
    assert list((tmp_path / "home").glob("tmp/*")) == []


def test_lines_come_however_deep_temporary_folders_are(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A socket could not be bound there: its path has at most 107 bytes."""
    deep = tmp_path.joinpath(*["a-folder-of-a-job-of-awx"] * 5)
    out, errors = start("-v", temporary=deep).communicate()
    paths = re.findall(r'"fifo": "(.*?)"', out)
    assert [path.startswith(str(deep)) and len(path) > 120 for path in paths] == [True] * len(HOSTS)
    assert sum(": line " in line for line in errors.splitlines()) == NUMBER * len(HOSTS)
    assert list(deep.iterdir()) == []


def test_three_hosts_share_a_line_of_totals(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    known = standing(leaving=NUMBER, later=None).encoded()
    _out, errors = start(standing=known).communicate()
    told = [line.partition(" ") for line in errors.splitlines() if "batch 3/20" in line]
    counts = ", ".join(f"{host} {NUMBER}/{NUMBER}" for host in HOSTS)
    assert told[-1][2] == f"batch 3/20 · {counts} moved · 6/60 nodes done"
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", time_of_day) for time_of_day, _space, _line in told)
    assert list((tmp_path / "home").glob("tmp/*")) == []


def test_under_awx_lines_are_output_of_the_job_while_they_happen(
    begin: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """By ansible-runner, with which AWX runs jobs: two hosts wait until the first line of one of them is an event."""
    job, meeting = tmp_path / "job", tmp_path / "meeting"
    for folder in (job / "project", job / "inventory", job / "env", meeting):
        folder.mkdir(parents=True)
    (meeting / "in place of a third host").touch()
    # Ansible runs in a terminal of its own, where only ansible-runner can end it.
    (job / "env/settings").write_text(json.dumps({"job_timeout": SECONDS - 10}))
    (job / "inventory/hosts").write_text("\n".join(HOSTS[:2]))
    options = ("--json", "--playbook", play(job / "project", meeting=str(meeting)).name)
    runner = (sys.executable, "-m", "ansible_runner", "run", *options, job)
    process = begin(*runner, output="2>&1", temporary=job / "tmp")
    heard = []
    assert process.stdout
    try:
        for event in map(json.loads, process.stdout):
            heard.append((event["event"], event["stdout"]))
            if event["stdout"] == f"{HOSTS[0]}: line 0":
                (meeting / "who reads along").touch()
    finally:
        (meeting / "nobody").touch()  # and modules that still wait for that end
    assert process.wait() == 0, heard
    for host in HOSTS[:2]:
        assert [told for told in heard if told[1].startswith(host)] == [
            ("verbose", f"{host}: line {number}") for number in range(NUMBER)
        ]


def test_details_are_for_who_asks(start: Callable[..., subprocess.Popen[str]]) -> None:
    out, errors = start("-v").communicate()
    assert sum(": detail" in line for line in errors.splitlines()) == NUMBER * len(HOSTS)
    assert '"checked": false' in out
    assert "_progress" not in out


def test_hostile_text_does_not_reach_the_terminal(start: Callable[..., subprocess.Popen[str]]) -> None:
    text = "\x1b]0;title\x07\x1b[2Jok: [a]\r\n\u202efatal"
    _out, errors = start(text=text).communicate()
    assert f"a: �]0;title��[2Jok: [a] �fatal {NUMBER - 1}" in errors.splitlines()
    assert not set("\x1b\x07\r\u202e") & set(errors)


def test_check_mode_reaches_the_module(start: Callable[..., subprocess.Popen[str]]) -> None:
    out, _errors = start("--check", "-v").communicate()
    assert out.count('"checked": true') == len(HOSTS)


def test_a_module_that_is_killed_leaves_no_task_waiting(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = start(killed=True)
    out, errors = process.communicate()
    assert process.returncode != 0
    assert (out + errors).count(f"line {NUMBER - 1}") >= len(HOSTS)
    assert list((tmp_path / "home").glob("tmp/*")) == []


def test_a_reader_of_stderr_that_goes_away_leaves_nothing_hanging(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    process = start(number=30)
    assert process.stderr
    assert process.stdout
    assert process.stderr.readline()
    process.stderr.close()
    assert process.stdout.read().count("ok:") == len(HOSTS)
    assert process.wait() == 0


@pytest.mark.parametrize("stream", ["2>&1", "2>/dev/null"])
def test_head_ends_a_play_and_does_not_hang_it(start: Callable[..., subprocess.Popen[str]], stream: str) -> None:
    """What becomes of the play is Ansible's matter; that something becomes of it is ours."""
    process = start(number=30)
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline()
    process.stdout.close()
    if stream == "2>&1":
        process.stderr.close()
    else:
        threading.Thread(target=process.stderr.read, daemon=True).start()
    assert process.wait() >= 0


def test_a_full_disk_behind_stderr_leaves_nothing_hanging(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start(output="2>/dev/full")
    out, _errors = process.communicate()
    assert out.count("ok:") == len(HOSTS)
    assert process.returncode >= 0


def test_a_full_disk_behind_all_output_ends_a_play_and_does_not_hang_it(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    assert start(output=">/dev/full 2>&1").wait() >= 0


def test_a_listener_that_fails_does_not_stop_listening() -> None:
    heard: list[bytes] = []

    def tell(message: bytes) -> None:
        heard.append(message)
        raise OSError("the terminal is gone")

    with _progress.listening(tell) as path:
        progress = Progress.of({"_progress": path})
        for number in range(3):
            progress.tell(str(number))
    assert heard == [b"=0", b"=1", b"=2"]


def test_what_a_module_writes_does_not_end_the_listening() -> None:
    with listener() as heard:
        with Path(heard.path).open("wb", buffering=0) as fifo:
            fifo.write(b"\n\n=first\n\n=sec")
            fifo.write(b"ond\n")
        Progress.of({"_progress": heard.path}).tell("third")
    assert heard.told == ["first", "second", "third"]


def test_nothing_is_lost_when_the_task_is_over_before_its_first_line_is_told() -> None:
    heard: list[bytes] = []
    telling, over = threading.Event(), threading.Event()

    def tell(message: bytes) -> None:
        telling.set()
        over.wait()
        heard.append(message)

    listening = _progress.listening(tell)
    path = Path(listening.__enter__() or "")
    with path.open("wb", buffering=0) as fifo:
        fifo.write(b"\n=first\n")
        telling.wait()
        fifo.write(b"=second\n")
    leaving = threading.Thread(target=listening.__exit__, args=(None, None, None))
    leaving.start()
    while path.exists():
        leaving.join(0.01)
    over.set()
    leaving.join()
    assert heard == [b"=first", b"=second"]


def test_only_its_user_may_write_and_nothing_is_left() -> None:
    # Those of other tests may end meanwhile.
    threads = set(threading.enumerate())
    with listener() as heard:
        fifo = Path(heard.path)
        assert (fifo.stat().st_mode & 0o777, fifo.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not fifo.parent.exists()
    assert set(threading.enumerate()) <= threads


def test_a_task_that_fails_leaves_nothing_either() -> None:
    heard: list[bytes] = []
    listening = _progress.listening(heard.append)
    path = listening.__enter__()
    Progress.of({"_progress": path}).tell("before")
    assert listening.__exit__(RuntimeError, RuntimeError("in the middle"), None) is not True
    assert heard == [b"=before"]
    assert path
    assert not Path(path).exists()


def test_where_no_fifo_can_be_made_the_module_runs_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise OSError("not on this file system")

    monkeypatch.setattr(os, "mkfifo", refuse)
    with _progress.listening(print) as path:
        Progress.of({"_progress": path}).tell("unheard")
    assert path is None
