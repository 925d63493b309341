# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials of a service account get into a private file, and nowhere else."""

from __future__ import annotations

import base64
import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import persistence
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.verbs.tokens import read_token
from ansible_collections.virtops.kubevirt.plugins.modules.access_kubeconfig import main

from testbed.pki import Authority
from unit.plugins.support.fake_api import SILENCE, Answer, Request, serving
from unit.plugins.support.modules import ModuleRunner
from unit.plugins.support.object_api import NAMESPACES, ObjectApi

ACCOUNT = f"{NAMESPACES}/ops/serviceaccounts/maintenance"
SECRET = "its-signature"


def token(account: str, expires: float) -> str:
    own = {"namespace": "ops", "serviceaccount": {"uid": account, "name": "maintenance"}}
    claims = {"exp": int(expires), "kubernetes.io": own}
    return f"head.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.{SECRET}"


@pytest.fixture
def api(authority: Authority) -> Iterator[ObjectApi]:
    fake = ObjectApi()
    fake.objects[ACCOUNT] = {"metadata": {"name": "maintenance", "uid": "u1"}}

    def issue(request: Request) -> Answer:
        expires = time.time() + request.body["spec"]["expirationSeconds"]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
        account = fake.objects[ACCOUNT]["metadata"]["uid"]
        return Answer(201, {"status": {"token": token(account, expires), "expirationTimestamp": stamp}})

    fake.faults[f"{ACCOUNT}/token"] = issue
    with serving(fake, authority.issue("server", "server", hosts=["127.0.0.1"])):
        yield fake


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "credentials"
    folder.mkdir()
    return folder / "maintenance"


@pytest.fixture
def write(run_module: ModuleRunner, connection: dict[str, Any], file: Path) -> Any:
    def run(**arguments: Any) -> Any:
        given = {"namespace": "ops", "name": "maintenance", "path": str(file), **arguments}
        result = run_module(main, **connection, **given)
        assert SECRET not in json.dumps(result)
        return result

    return run


def asked(api: ObjectApi) -> int:
    return len([request for request in api.requests if request.path.endswith("/token")])


def test_a_kubeconfig_for_the_same_server(write: Any, api: ObjectApi, file: Path, authority: Authority) -> None:
    assert write()["changed"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kubeconfig = json.loads(file.read_text())
    cluster = kubeconfig["clusters"][0]["cluster"]
    assert cluster["server"] == api.url
    assert base64.b64decode(cluster["certificate-authority-data"]) == authority.cert.read_bytes()
    assert SECRET in kubeconfig["users"][0]["user"]["token"]


def test_a_token_by_itself(write: Any, file: Path) -> None:
    result = write(format="token", expiration=3600)
    found = read_token(file.read_text().strip())
    assert found
    assert result["expires_at"] == found.expires.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert SECRET not in repr(found)


def test_what_is_good_still_stays(write: Any, api: ObjectApi, file: Path) -> None:
    write()
    before = file.read_text()
    assert not write()["changed"]
    assert (file.read_text(), asked(api)) == (before, 1)


def test_a_token_whose_answer_is_lost_is_made_again(
    write: Any, api: ObjectApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows the first, which runs out."""
    monkeypatch.setattr(persistence, "READING", 20.0)
    issue, rest = api.faults[f"{ACCOUNT}/token"], [SILENCE]
    api.faults[f"{ACCOUNT}/token"] = lambda request: rest.pop() if rest else issue(request)
    assert write()["changed"]
    assert (asked(api), SECRET in file.read_text()) == (2, True)
    assert not write()["changed"]
    assert asked(api) == 2


def test_a_file_that_others_can_read_is_made_private(write: Any, file: Path) -> None:
    write()
    file.chmod(0o644)
    assert write()["changed"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "text", "a.b.c", "{}", '{"users": []}', '{"users": [{"user": {"token": 1}}]}'])
def test_any_other_file_is_replaced(write: Any, file: Path, content: str) -> None:
    file.write_text(content)
    assert write()["changed"]


def test_a_token_that_is_half_over_is_replaced(write: Any, api: ObjectApi, file: Path) -> None:
    file.write_text(token("u1", time.time() + 1700) + "\n")
    assert write(format="token", expiration=3600)["changed"]
    # One that is good for longer than is wanted, too.
    assert write(format="token", expiration=600)["changed"]


def test_a_token_of_an_account_that_was_made_anew_is_replaced(write: Any, api: ObjectApi) -> None:
    write()
    api.objects[ACCOUNT]["metadata"]["uid"] = "u2"
    assert write()["changed"]


@pytest.mark.parametrize("written", ["kubeconfig", "token"])
def test_credentials_are_removed_without_asking_the_server(
    write: Any, api: ObjectApi, file: Path, written: str
) -> None:
    write(format=written)
    asked_before = len(api.requests)
    gone = {"changed": True, "path": str(file), "expires_at": None}
    assert write(state="absent", check=True) == {**write(state="absent", check=True), **gone}
    assert file.exists()
    assert write(state="absent") == {**write(state="absent", check=True), **gone}
    assert (file.exists(), write(state="absent")["changed"], len(api.requests)) == (False, False, asked_before)


@pytest.mark.parametrize("content", ["", "text", "apiVersion: v1\nkind: Config\n", '{"users": []}', b"\xff"])
@pytest.mark.parametrize("check", [True, False])
def test_a_file_that_holds_no_credentials_of_the_account_stays(
    write: Any, file: Path, content: str | bytes, *, check: bool
) -> None:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused = write(state="absent", check=check)
    assert refused["failed"]
    assert "it holds no token of service account ops/maintenance alone. Correct the path, or remove" in refused["msg"]
    assert file.exists()


def test_a_kubeconfig_that_kubectl_has_written_anew_is_removed(write: Any, file: Path) -> None:
    write()
    file.write_text(yaml.safe_dump(json.loads(file.read_text())))
    assert write(state="absent")["changed"]
    assert not file.exists()


def test_a_kubeconfig_that_is_for_others_as_well_stays(write: Any, file: Path) -> None:
    write()
    found = json.loads(file.read_text())
    found["users"].append({"name": "jane", "user": {"token": "hers"}})
    file.write_text(json.dumps(found))
    assert (
        "it holds no token of service account ops/maintenance alone. Correct the path" in write(state="absent")["msg"]
    )
    assert file.exists()


@pytest.mark.parametrize("check", [True, False])
def test_what_its_folder_keeps_is_refused_beforehand(
    write: Any, file: Path, monkeypatch: pytest.MonkeyPatch, *, check: bool
) -> None:
    """So the account is still there."""
    write()
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path) != file.parent)
    refused = write(state="absent", check=check)
    assert (refused["error"]["reason"], file.exists()) == ("EACCES", True)
    assert "Cannot remove the credentials" in refused["msg"]


def test_credentials_of_another_account_stay(write: Any, file: Path) -> None:
    write()
    refused = write(state="absent", name="another")
    assert "it holds no token of service account ops/another alone, but one of ops/maintenance. " in refused["msg"]
    assert file.exists()


def test_a_folder_stays(write: Any, file: Path) -> None:
    file.mkdir()
    (file / "something").touch()
    refused = write(state="absent")
    assert refused["error"]["reason"] == "EISDIR"
    assert (file / "something").exists()


def test_of_a_link_the_link_is_removed(write: Any, file: Path) -> None:
    write()
    link = file.with_name("link")
    link.symlink_to(file)
    assert write(state="absent", path=str(link))["changed"]
    assert (link.is_symlink(), file.exists()) == (False, True)


def test_check_mode_writes_nothing(write: Any, api: ObjectApi, file: Path) -> None:
    assert write(check=True) == {**write(check=True), "changed": True, "expires_at": None}
    del api.objects[ACCOUNT]
    assert write(check=True)["changed"]
    assert (file.exists(), asked(api)) == (False, 0)


def test_an_account_that_is_not_there(write: Any, api: ObjectApi) -> None:
    del api.objects[ACCOUNT]
    assert "there is no service account ops/maintenance. Make it first" in write()["msg"]


def test_what_cannot_be_meant(write: Any, file: Path) -> None:
    result = write(expiration=60, name="")
    assert "expiration is 60" in result["msg"]
    assert "name is empty" in result["msg"]
    result = write(state="absent", expiration=60, name="")
    assert result["msg"] == "Cannot remove the credentials: name is empty. Correct the task; nothing was removed."
    assert "Create its folder first" in write(path=str(file.parent / "nowhere" / "file"))["msg"]
