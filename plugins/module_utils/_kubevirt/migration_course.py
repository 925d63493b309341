# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a migration takes, and what KubeVirt does when it takes too long.

Follows pkg/virt-launcher/virtwrap/live-migration-source.go and getVMIMigrationDataSize in manager.go beside it. How
fast a guest changes its memory while it is copied is unknown: an idle guest needs the time given here, a busy one more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._model import quantity
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.objects import Object

# The setting is called "per GiB", but KubeVirt counts begun units of this size.
_TIMEOUT_UNIT = 10**9


class Ending(Enum):
    """By itself in time; after the timeout with the guest running on the target already, or paused; not at all."""

    IN_TIME = "in_time"
    POST_COPY = "post_copy"
    PAUSED = "paused"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Link:
    """What is assumed of the network and the nodes, as no API tells it.

    bytes_per_second: between two nodes, shared by the migrations that leave one. setup: seconds that each migration
    needs beside the copying: to schedule and start the target pod, to prepare it, and to switch over.
    """

    bytes_per_second: float = 1.25e9
    setup: float = 10.0


@dataclass(frozen=True, slots=True)
class MigrationCourse:
    """seconds: until its end, good or bad. timeout: seconds of copying after which KubeVirt acts, None for never."""

    seconds: float
    timeout: float | None
    ending: Ending


def course(vmi: Object, migrations: Migrations, link: Link) -> MigrationCourse:
    """The course of the VMI's migration on its terms. Raises `QuantityError`."""
    size = data_size(vmi)
    copying = size / rate(migrations, link)
    timeout = migrations.completion_timeout_per_gib * math.ceil(size / _TIMEOUT_UNIT) or None
    ending = _ending(copying, timeout, migrations)
    return MigrationCourse(link.setup + (timeout if timeout and ending is Ending.ABORTED else copying), timeout, ending)


def data_size(vmi: Object) -> int:
    """Bytes of memory, and of volumes that move along. How full local disks are, which are copied too, is not told.

    Raises `QuantityError`.
    """
    domain = vmi["spec"].get("domain") or {}
    guest = (domain.get("memory") or {}).get("guest")
    memory = guest or ((domain.get("resources") or {}).get("requests") or {}).get("memory") or 0
    moving = (vmi.get("status") or {}).get("migratedVolumes") or ()
    sources = (volume.get("sourcePVCInfo") or {} for volume in moving)
    disks = ((source.get("capacity") or {}).get("storage") or 0 for source in sources)
    return sum(quantity.units(quantity.parse(amount)) for amount in (memory, *disks))


def rate(migrations: Migrations, link: Link) -> float:
    """Bytes per second of one migration when as many leave its node as may."""
    share = link.bytes_per_second / max(1, migrations.parallel_outbound_per_node)
    return min(migrations.bandwidth, share) if migrations.bandwidth else share


def _ending(copying: float, timeout: float | None, migrations: Migrations) -> Ending:
    if timeout is None or copying <= timeout:
        return Ending.IN_TIME
    if not migrations.allow_workload_disruption:
        return Ending.ABORTED
    if migrations.post_copy:
        return Ending.POST_COPY
    # A paused guest gets as much time again.
    return Ending.PAUSED if copying <= 2 * timeout else Ending.ABORTED
