# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of argument specs that modules share, and limits that a spec cannot express.

Their documentation stands in doc_fragments/_connection.py and doc_fragments/_progress.py.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest

# Options of a module by their names, as Ansible reads them; also the words of a single option.
ArgumentSpec = dict[str, Any]


def cluster() -> ArgumentSpec:
    """How to reach the cluster: kubernetes.core's options, and the patience of a single request."""
    # Newer versions of kubernetes.core show all of a kubeconfig's content but the values of a few keys, and log it.
    kubeconfig = {"type": "raw", "no_log": True}
    own = {"kubeconfig": kubeconfig, "request_timeout": {"type": "int", "default": 60}}
    return {**copy.deepcopy(AUTH_ARG_SPEC), **own}


def connection() -> ArgumentSpec:
    """The same for a module, and the way by which its action plugin hears of it, which is no part of the interface."""
    return {**cluster(), "_progress": {"type": "str"}}


def wait() -> ArgumentSpec:
    """How long to wait for the cluster, by kubernetes.core's names and defaults; seconds."""
    return {
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 120},
        "wait_sleep": {"type": "int", "default": 5},
    }


def require_positive(params: Mapping[str, Any], *names: str) -> None:
    """Raise InvalidRequest unless each of the numbers is at least 1."""
    problems = [f"{name} is {params[name]}" for name in names if params[name] < 1]
    if problems:
        raise InvalidRequest("read the options of the task", problems, "Give a number of at least 1.")
