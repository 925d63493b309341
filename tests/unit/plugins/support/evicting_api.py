# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of draining_api.py, with controllers that replace the pods that are evicted."""

from __future__ import annotations

from dataclasses import dataclass, field

from unit.plugins.support.draining_api import DrainingApi
from unit.plugins.support.fake_api import Answer, Request

PODS = "/api/v1/namespaces/shop/pods"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass
class EvictingApi(DrainingApi):
    """Evicted pods of a controller are replaced by one on n2, unless they are `forgotten`."""

    forgotten: bool = False
    attempts: list[str] = field(default_factory=list)

    def _list(self, request: Request) -> Answer:
        if request.path == PODS and "labelSelector" not in request.query:
            return self._items([item for path, item in list(self.objects.items()) if path.startswith(f"{PODS}/")])
        return super()._list(request)

    def _evict(self, request: Request) -> Answer:
        path = request.path.removesuffix("/eviction")
        self.attempts.append(path.rpartition("/")[2])
        pod = self.objects.get(path)
        answer = super()._evict(request)
        if pod and path not in self.objects and pod["metadata"]["ownerReferences"] and not self.forgotten:
            self.add_pod(f"{pod['metadata']['name']}-new", "n2", status=READY)
        return answer
