# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KubeVirt with another configuration for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.api import Api, Object, resource_path

PATH = resource_path("kubevirt.io/v1", "kubevirts", "kubevirt", "kubevirt")
# So many migrations at once as a test may ever want.
ALL_AT_ONCE = {"parallelMigrationsPerCluster": 1000, "parallelOutboundMigrationsPerNode": 1000}


@contextmanager
def configured(api: Api, configuration: Object) -> Iterator[None]:
    """With this spec.configuration and no other; virt-controller follows within moments."""
    before = api.get(PATH)["spec"].get("configuration") or {}
    configure(api, configuration)
    try:
        yield
    finally:
        configure(api, before)


def configure(api: Api, configuration: Object) -> None:
    api.patch(PATH, [{"op": "add", "path": "/spec/configuration", "value": configuration}], "json")
