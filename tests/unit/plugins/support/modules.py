# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module as Ansible does: through its main(), arguments in, JSON out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible.module_utils.testing import patch_module_args

Result = dict[str, Any]


class ModuleRunner:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(
        self, main: Callable[[], None], *, check: bool = False, diff: bool = False, **arguments: Any
    ) -> Result:
        """The result; it fails the test unless the exit code agrees with it."""
        internals = {"_ansible_check_mode": check, "_ansible_diff": diff, "_ansible_remote_tmp": "/tmp"}
        self._capsys.readouterr()
        with patch_module_args({**arguments, **internals}), pytest.raises(SystemExit) as ended:
            main()
        result: Result = json.loads(self._capsys.readouterr().out)
        assert (ended.value.code == 0) is not bool(result.get("failed")), result
        return result
