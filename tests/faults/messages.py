# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run says of its failures, and what of it helps nobody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_FATAL = re.compile(r"^(?:fatal|failed): \[[^]]*\].*? => (\{.*\})$", re.MULTILINE)
# What the process that renews a run says when it ends an ansible-playbook that has lost it.
_ENDED = re.compile(r"^ansible-playbook is ended, as \S", re.MULTILINE)
# What tells of a fault of the program, and nothing of its cause.
_USELESS = ("Traceback (most recent call last)", "MODULE FAILURE", "object has no attribute", "is undefined")


def failures(log: str) -> Iterator[str]:
    """The message of each task that failed."""
    for found in _FATAL.finditer(log):
        try:
            yield str(json.loads(found[1]).get("msg", ""))
        except ValueError:
            yield found[1]


def useless(log: str, code: int, *, excused: bool) -> Iterator[str]:
    """What is wrong with it. excused: a process of the run was ended, of which Ansible tells in its own words."""
    told = list(failures(log))
    if excused:
        return
    yield from (f"the log says {words!r}" for words in _USELESS if words in log)
    yield from (f"a message that says little: {text!r}" for text in told if text.count(".") < 2)
    if code != 0 and not (told or _ENDED.search(log)):
        yield f"exit code {code} without a message"
