# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""Texts from a cluster as variables: none of them is ever a template, whoever has written it.

Since 2.19 Ansible takes for a template only what is trusted. But `ansible-inventory` prints what is not as a mapping,
`{"__ansible_unsafe": ...}`, and AWX, which reads that, expects a text for an address. So what could be no template
anyway, and no condition that calls anything, is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible.utils.unsafe_proxy import wrap_var

try:
    from ansible.template import trust_as_template
except ImportError:  # before 2.19, where every text is trusted that is not marked

    def trust_as_template(value: str) -> str:
        return value


# No braces, of which templates are made, and no brackets, quotes and bars, of which calls and filters are.
_HARMLESS = re.compile(r"[A-Za-z0-9 ._:/@+-]*")


def as_variable(value: Any) -> Any:
    """Plain data, with its texts marked."""
    if isinstance(value, Mapping):
        return {key: as_variable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_variable(inner) for inner in value]
    if isinstance(value, str) and _HARMLESS.fullmatch(value):
        return trust_as_template(value)
    return wrap_var(value)
