# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An account is made and removed by playbook and role, of an API server that is busy now and then."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.pki import Authority, write_kubeconfig
from unit.playbooks.playing import play
from unit.plugins.support.account_api import PLANNER, AccountApi
from unit.plugins.support.fake_api import Answer, Request, refusal, serving
from unit.plugins.support.object_api import NAMESPACES

pytestmark = pytest.mark.playbook

ACCOUNT = f"{NAMESPACES}/ops/serviceaccounts/me"


@dataclass
class BusyApi(AccountApi):
    """It refuses each request once, but for those by which kubernetes.core connects, and issues tokens."""

    refused: list[Request] = field(default_factory=list)

    def _list(self, request: Request) -> Answer:
        if request not in self.refused:
            self.refused.append(request)
            return refusal(429, "TooManyRequests", "later")
        if request.path == f"{ACCOUNT}/token":
            expires = time.time() + request.body["spec"]["expirationSeconds"]
            account = self.objects[ACCOUNT]["metadata"]["uid"]
            own = {"namespace": "ops", "serviceaccount": {"uid": account, "name": "me"}}
            claims = json.dumps({"exp": int(expires), "kubernetes.io": own})
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires))
            token = f"head.{base64.urlsafe_b64encode(claims.encode()).decode()}.end"
            return Answer(201, {"status": {"token": token, "expirationTimestamp": stamp}})
        return super()._list(request)


def test_an_account_is_made_and_removed_whatever_is_refused_for_now(tmp_path: Path) -> None:
    authority, api, file = Authority(tmp_path), BusyApi(), tmp_path / "maintenance.kubeconfig"

    def access(*options: str, status: int = 0, **more: Any) -> str:
        api.refused.clear()
        given = {"access_namespace": "ops", "access_account": "me", "access_roles": ["planning"], **more}
        content = "- import_playbook: virtops.kubevirt.access\n"
        told, found = play(tmp_path, content, *options, "-e", json.dumps(given), kubeconfig=kubeconfig)
        assert found == status, told
        return told

    with serving(api, authority.issue("server", "server", hosts=["127.0.0.1"])):
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", api.url, authority.cert, {"token": "any"})
        foretold = access("--check", access_path=str(file))
        assert (api.objects, file.exists(), "changed=2" in foretold) == ({}, False, True)
        access(access_path=str(file))
        assert ({*api.objects}, file.exists()) == (PLANNER, True)
        (theirs := tmp_path / "config").write_text("their own")
        for path in (theirs, tmp_path):
            refused = access(access_path=str(path), access_state="absent", status=2)
            assert "Cannot re" in refused, refused
        assert ({*api.objects}, theirs.exists()) == (PLANNER, True)
        access(access_path=str(file), access_state="absent")
        assert api.objects.keys() == {f"{NAMESPACES}/ops", f"{NAMESPACES}/medik8s-leases"}
        assert not file.exists()
