# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists of a snapshot, as `kubectl get -o json` would give them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.snapshot_kinds import KINDS

from testbed.api import Api, ApiError


def read(api: Api) -> dict[str, list[Any]]:
    """All of them, whole; what the cluster does not serve is empty."""
    found: dict[str, list[Any]] = {}
    for kind in KINDS:
        try:
            found[kind.name] = api.items(kind.path)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found[kind.name] = []
    return found
