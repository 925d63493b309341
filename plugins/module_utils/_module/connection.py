# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module's connection to its cluster: as patient as the task has time, and telling of trouble that lasts."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport import client
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.transport.persistence import (
    Persistence,
    Tell,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import Progress, is_heard
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.run import Module


def connect(module: Module) -> client.Client:
    """Raises Failure. The module has `arguments.connection()`; its `wait_timeout`, if it waits, is its own time."""
    params = module.params
    waits = params.get("wait", True) and not module.check_mode
    return connect_for(module, params.get("wait_timeout") if waits else None)


def connect_for(module: Module, seconds: float | None) -> client.Client:
    """The same where the task's own time is another one, None if it has none. Raises Failure."""
    return connect_with(module, persistence_of(module, seconds))


def connect_with(module: Module, persistence: Persistence) -> client.Client:
    """The same by what a task that connects more than once has for all its requests. Raises Failure."""
    return client.connect(module, module.params["request_timeout"], persistence)


def persistence_of(module: Module, seconds: float | None) -> Persistence:
    """seconds: the task's own time, from now on; None if it has none."""
    # Who cannot listen while the task runs is warned when it ends.
    tell: Tell = Progress.of(module.params).tell if is_heard(module.params) else module.warn
    return Persistence(seconds, tell)
