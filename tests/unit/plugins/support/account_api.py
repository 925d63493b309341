# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of object_api.py with the roles and bindings of accounts."""

from __future__ import annotations

from unit.plugins.support.fake_api import Answer, Request, page, refusal
from unit.plugins.support.object_api import NAMESPACES, ObjectApi

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, LEASE_ROLES = f"{RBAC}/clusterroles", f"{RBAC}/namespaces/medik8s-leases/roles"
BINDINGS, LEASE_BINDINGS = f"{RBAC}/clusterrolebindings", f"{RBAC}/namespaces/medik8s-leases/rolebindings"
PLANNING = "virtops.kubevirt:planning"
# What an account has that only plans.
PLANNER = {
    f"{NAMESPACES}/ops",
    f"{NAMESPACES}/medik8s-leases",
    f"{NAMESPACES}/ops/serviceaccounts/me",
    f"{ROLES}/{PLANNING}",
    f"{LEASE_ROLES}/{PLANNING}",
    f"{BINDINGS}/{PLANNING}:ops:me",
    f"{LEASE_BINDINGS}/{PLANNING}:ops:me",
}


class AccountApi(ObjectApi):
    """It lists roles and bindings as well, and lets nothing be bound to a role that there is not.

    So does a real one where the user may not `bind` roles. is_kubevirt_here: with the role that KubeVirt brings.
    """

    is_kubevirt_here = True

    def _list(self, request: Request) -> Answer:
        listed = request.path.removeprefix(f"{RBAC}/")
        if request.method == "GET" and listed in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"):
            found = [item for path, item in list(self.objects.items()) if f"/{listed}/" in path]
            # In a list they do not say what they are.
            items = [{key: item[key] for key in item.keys() - {"apiVersion", "kind"}} for item in found]
            return page(request, items)
        return super()._list(request)

    def _create(self, request: Request) -> Answer:
        if "roleRef" in request.body:
            role = request.path.replace("rolebindings", "roles") + f"/{request.body['roleRef']['name']}"
            is_there = self.is_kubevirt_here if "kubevirt.io:migrate" in role else role in self.objects
            if not is_there:
                return refusal(404, "NotFound", "there is no such role")
        return super()._create(request)
