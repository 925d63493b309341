# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module as Ansible does: through its main(), arguments in, JSON out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import Configuration

from ansible.module_utils import _internal
from ansible.module_utils.common import warnings
from ansible.module_utils.common.parameters import PASS_VARS
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client

Result = dict[str, Any]


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let a module see only what its arguments name, and leave nothing behind, as in a process of its own."""
    for name in [name for name in os.environ if name == "KUBECONFIG" or name.startswith("K8S_AUTH_")]:
        monkeypatch.delenv(name)
    # A kubeconfig once loaded is the process's default.
    monkeypatch.setattr(Configuration, "_default", None)
    # kubernetes.core remembers what a server offers in the folder for temporary files, by the server's address, and in
    # the process its clients, by how they connect. Another test's server may have had the same free port.
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(client, "_pool", {})
    # Ansible collects warnings and deprecations of a module for the whole process, unless the test of a filter has made
    # that a controller's, which prints them instead.
    monkeypatch.setattr(warnings, "_global_warnings", {})
    monkeypatch.setattr(warnings, "_global_deprecations", {})
    monkeypatch.setattr(_internal, "is_controller", False)


class ModuleRunner:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(
        self, main: Callable[[], None], *, check: bool = False, diff: bool = False, **arguments: Any
    ) -> Result:
        """The result; it fails the test unless the exit code agrees with it."""
        # What is secret is so where options are told, too; versions of ansible-core that know this do so when asked to.
        told = {"_ansible_inject_invocation": True} if "inject_invocation" in PASS_VARS else {}
        internals = {**told, "_ansible_check_mode": check, "_ansible_diff": diff, "_ansible_remote_tmp": "/tmp"}
        self._capsys.readouterr()
        with patch_module_args({**arguments, **internals}), pytest.raises(SystemExit) as ended:
            main()
        # Something else may have printed meanwhile.
        result: Result = json.loads(self._capsys.readouterr().out.splitlines()[-1])
        assert (ended.value.code == 0) is not bool(result.get("failed")), result
        return result
