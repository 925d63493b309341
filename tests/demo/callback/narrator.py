# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell a playbook's run as a story: its plays, what it says, what it changes and how long each change took.

Everything, told or not, is also written as one JSON line a task and host to the file VIRTOPS_DEMO_TIMES, for reckoning.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: narrator
type: stdout
short_description: Tells a playbook's run as a story
description: Shows plays, messages, changes and failures, and keeps the time of all tasks.
"""

SAYING = ("ansible.builtin.debug", "debug")
DRAIN = "virtops.kubevirt.node_drain"
WIDTH = 82


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible is published without types
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "narrator"

    def __init__(self) -> None:
        super().__init__()
        self._times = Path(os.environ["VIRTOPS_DEMO_TIMES"])
        self._began: dict[tuple[str, str], float] = {}

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._display.display(f"\n  ▸ {play.get_name()}", color=constants.COLOR_HIGHLIGHT)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._began[host.name, task._uuid] = time.time()

    def v2_runner_on_ok(self, result: Any) -> None:
        seconds = self._record(result, "ok")
        task, values = result.task, result.result
        if task.action in SAYING:
            self._say(values.get("msg", ""))
        elif values.get("changed"):
            text = f"{result.host.name}: {task.get_name().rpartition(' : ')[2]}"
            self._display.display(f"    {text:<{WIDTH}} {seconds:6.1f} s", color=constants.COLOR_CHANGED)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._record(result, "ignored" if ignore_errors else "failed")
        text = f"{result.host.name}: {result.task.get_name().rpartition(' : ')[2]}: {result.result.get('msg', '')}"
        self._display.display(f"    {text}", color=constants.COLOR_ERROR)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._record(result, "unreachable")
        self._display.display(f"    {result.host.name}: {result.result.get('msg', '')}", color=constants.COLOR_ERROR)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._record(result, "skipped")

    def _say(self, message: Any) -> None:
        for line in message if isinstance(message, list) else [message]:
            self._display.display(f"    {line}")

    def _record(self, result: Any, status: str) -> float:
        """Write down how a task went on a host, and return the seconds it took."""
        ended = time.time()
        began = self._began.pop((result.host.name, result.task._uuid), ended)
        values = result.result
        entry = {
            "host": result.host.name,
            "task": result.task.get_name(),
            "action": result.task.action,
            "status": status,
            "changed": bool(values.get("changed")),
            "began": began,
            "ended": ended,
            "moving": _moving(values) if result.task.action == DRAIN else 0,
            "ways": _ways(values) if result.task.action == DRAIN and "moves" in values else None,
        }
        with self._times.open("a") as stream:
            stream.write(json.dumps(entry, default=str) + "\n")
        return ended - began


def _moving(values: dict[str, Any]) -> int:
    """Seconds in which VMs and pods left or started again: those of a kind at once, the kinds one after the other."""
    kinds = ("evicted", "moves", "interrupted", "started")
    return sum(max((entry["seconds"] or 0 for entry in values.get(kind) or ()), default=0) for kind in kinds)


def _ways(values: dict[str, Any]) -> dict[str, Any]:
    """Where VMs went, which were interrupted, how many left as planned, and what came otherwise.

    Of that its kind, and whether the plan had told it as an assumption.
    """
    deviations = values.get("deviations", ())
    return {
        "as_planned": values.get("as_planned", 0),
        "deviations": [[e["kind"], f"{e['name']}: {e['planned']}, {e['done']}", e["assumed"]] for e in deviations],
        "moves": [move["node"] for move in values["moves"]],
        "interrupted": [machine["name"] for machine in values["interrupted"]],
    }
