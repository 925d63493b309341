# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""What is meant by a kubeconfig: a path, a mapping, or a text that is one, as a text area gives it.

Such a text holds secrets, so nothing of it is ever told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.invalid_request import InvalidRequest

# What no path has: the beginning of JSON, a second line, or a key of YAML, also where its lines were run together.
# Playbooks that tell the path in a command know texts by the same.
_TEXT = re.compile(r"^\{|\n|: ")


def meant(given: Any) -> Any:
    """The mapping that a text is, a path without the space around it, and anything else as it is.

    Raises InvalidRequest for a text that is neither.
    """
    if not isinstance(given, str):
        return given
    text = str(given).strip()
    return _mapping(text) if _TEXT.search(text) else text


def is_file(path: Path) -> bool:
    """False as well for what is too long for a name."""
    try:
        return path.is_file()
    except OSError:
        return False


def _mapping(text: str) -> Any:
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        # Its message quotes the text.
        found = None
    if not isinstance(found, Mapping):
        problem = "its text is no mapping in JSON or YAML"
        raise InvalidRequest("read the kubeconfig", [problem], "Correct it, or give the path of a file.")
    # A time is no more than a text to those who take it.
    return json.loads(json.dumps(found, default=str))
