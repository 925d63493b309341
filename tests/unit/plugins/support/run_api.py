# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in which runs are held, remembered and given up: what is a run's can be listed by its labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from testbed.pki import Certificate
from unit.plugins.support.draining_api import DrainingApi, fill
from unit.plugins.support.fake_api import Answer, Object, Request, page, refusal, serving
from unit.plugins.support.object_api import NAMESPACES
from unit.plugins.support.watched_lists import is_selected

PLACE = f"{NAMESPACES}/medik8s-leases"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases"
CONFIG_MAPS = f"{PLACE}/configmaps"
CLUSTER = "uid-of-the-cluster"
LISTED = (LEASES, CONFIG_MAPS)


@dataclass
class RunApi(DrainingApi):
    def _list(self, request: Request) -> Answer:
        if request.method == "DELETE" and request.path.startswith(LISTED):
            known = request.path in self.objects
            return self._delete(request) if known else refusal(404, "NotFound", f"{request.path} not found")
        if request.method == "GET" and request.path in LISTED:
            return self._labelled(
                request, [item for path, item in list(self.objects.items()) if path.startswith(f"{request.path}/")]
            )
        return super()._list(request)

    def _labelled(self, request: Request, items: list[Object]) -> Answer:
        selector = request.query.get("labelSelector", "")
        found = [item for item in items if is_selected(selector, item["metadata"].get("labels", {}))]
        return page(request, found)

    def run_lease(self, run: str = "kernel") -> Any:
        """The Lease of a run, None if nobody holds it."""
        return self.objects.get(f"{LEASES}/virtops-run-{run}")

    def config_maps(self) -> list[Object]:
        return [item for path, item in list(self.objects.items()) if path.startswith(CONFIG_MAPS)]

    def hold_run(self, invocation: str, *, seconds: int = 30, renewed: str = "2026-01-01T00:00:10.000000Z") -> None:
        """As another process of ansible-playbook does."""
        about = {"user": "jane", "host": "elsewhere", "pid": 4711}
        self.objects[f"{LEASES}/virtops-run-kernel"] = {
            "metadata": {
                "name": "virtops-run-kernel",
                "namespace": "medik8s-leases",
                "resourceVersion": "1",
                "annotations": {"virtops.kubevirt/holder": json.dumps(about)},
            },
            "spec": {
                "holderIdentity": f"kernel/{invocation}",
                "leaseDurationSeconds": seconds,
                "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": renewed,
                "leaseTransitions": 0,
            },
        }


def busy_run() -> RunApi:
    """Run `kernel` is held by invocation a1; node n1 has VMI `db` and pod `api`, and n2 and n3 are empty."""
    fake = RunApi()
    fill(fake, "n1", "n2", "n3")
    _basics(fake)
    fake.hold_run("a1", seconds=10**9)
    fake.add_vmi("db")
    fake.add_pod("api")
    return fake


def _basics(fake: RunApi) -> None:
    fake.objects[f"{NAMESPACES}/kube-system"] = {"metadata": {"name": "kube-system", "uid": CLUSTER}}
    fake.objects[PLACE] = {"metadata": {"name": "medik8s-leases"}}


@contextmanager
def running(certificate: Certificate) -> Iterator[RunApi]:
    """A cluster in which no run is held, and the namespace of Leases is there."""
    fake = RunApi()
    _basics(fake)
    with serving(fake, certificate):
        yield fake
