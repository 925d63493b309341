# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a run's words helps nobody."""

from __future__ import annotations

import pytest

from faults import messages

TOLD = 'fatal: [w1]: FAILED! => {"msg": "Cannot cordon node w1. Start again."}\n'


@pytest.mark.parametrize(
    ("log", "code", "wrong"),
    [
        (TOLD, 2, []),
        ("PLAY RECAP\n", 0, []),
        ("PLAY RECAP\n", 2, ["exit code 2 without a message"]),
        ("TASK [Patch]\nansible-playbook is ended, as nobody holds run kernel.\n", -15, []),
        ("TASK [Patch]\nansible-playbook is ended, as \n", -15, ["exit code -15 without a message"]),
        ('fatal: [w1]: FAILED! => {"msg": "No."}\n', 2, ["a message that says little: 'No.'"]),
    ],
)
def test_who_ends_says_why(log: str, code: int, wrong: list[str]) -> None:
    assert list(messages.useless(log, code, excused=False)) == wrong
