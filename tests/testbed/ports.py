# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TCP ports for a testbed, chosen so that testbeds that start at the same time do not meet."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import closing

from testbed.home import TestbedError, existing

# Below the range from which the system takes ports of outgoing connections: one of those could
# otherwise sit on a port between its choice and its use.
RANGE = range(20000, 30000)


def choose(uses: Sequence[str]) -> dict[str, int]:
    """A free port for each use. The caller holds the lock under which all testbeds choose theirs."""
    taken = {port for home in existing() if (settings := home.settings()) for port in settings.ports.values()}
    chosen: dict[str, int] = {}
    for port in random.sample(RANGE, k=len(RANGE)):
        if len(chosen) == len(uses):
            return chosen
        if port not in taken and is_free(port):
            chosen[uses[len(chosen)]] = port
    raise TestbedError(f"Fewer than {len(uses)} TCP ports from {RANGE.start} to {RANGE.stop} are free.")


def is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def answers(port: int) -> bool:
    """Whether something listens on a port of loopback."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
