# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Run a module in rounds and show its progress while it works; see module_utils/_module/rounds.py for the other side.

Progress goes to stderr: on stdout it would break callbacks that print JSON.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.utils.display import Display
from ansible_collections.virtops.kubevirt.plugins.plugin_utils._cluster_action import ClusterAction, Values

display = Display()

# A round ends with news; without any it is a sign of life to the connection, not to people.
_ROUND_SECONDS = 20.0


class RoundsAction(ClusterAction):
    """Repeats the module until it returns a result instead of a state."""

    def _work(self, arguments: Values, task_vars: Values) -> Values:
        """The result of the last round."""
        started = time.monotonic()
        state: Any = None
        while True:
            given = {"elapsed": time.monotonic() - started, "seconds": _ROUND_SECONDS, "state": state}
            result: Values = self._execute_module(
                module_name=self._task.action, module_args={**arguments, "_round": given}, task_vars=task_vars
            )
            for line in result.pop("_progress", ()):
                display.display(line, stderr=True)
            state = result.pop("_round", None)
            invocation = result.get("invocation", {}).get("module_args", {})
            invocation.pop("_round", None)
            if state is None:
                return result
