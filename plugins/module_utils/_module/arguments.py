# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of argument specs that modules share. Their documentation stands in doc_fragments/_connection.py."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC


def connection() -> dict[str, Any]:
    """How to reach the cluster: kubernetes.core's options, and the patience of a single request."""
    return {**copy.deepcopy(AUTH_ARG_SPEC), "request_timeout": {"type": "int", "default": 60}}


def wait() -> dict[str, Any]:
    """How long to wait for the cluster, by kubernetes.core's names and defaults; seconds."""
    return {
        "wait": {"type": "bool", "default": False},
        "wait_timeout": {"type": "int", "default": 120},
        "wait_sleep": {"type": "int", "default": 5},
    }
