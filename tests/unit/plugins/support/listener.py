# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module tells while it runs, heard as its action plugin hears it: by a real FIFO, from a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from ansible_collections.virtops.kubevirt.plugins.module_utils._execution.standing import Standing
from ansible_collections.virtops.kubevirt.plugins.module_utils._module.progress import decode_line, find_standing
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._progress import listening


@dataclass
class Heard:
    """path: for a module's option `_progress`. The others are complete when the listener is left."""

    path: str
    told: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)


@contextmanager
def listener() -> Iterator[Heard]:
    def hear(message: bytes) -> None:
        if standing := find_standing(message):
            heard.standings.append(standing)
            return
        line, is_detail = decode_line(message)
        (heard.details if is_detail else heard.told).append(line)

    with ExitStack() as open_ones:
        path = open_ones.enter_context(listening(hear))
        assert path
        heard = Heard(path)
        yield heard
