# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules as the guide on placement_lint lists them.

`python -m unit.plugins.module_utils._lint.page`, with tests/ and the collection on PYTHONPATH, writes the list anew.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules.registry import LINT_RULES

PAGE = Path(__file__).parents[5] / "docs/docsite/rst/placement_lint.rst"
MARK = "\n.. The rules themselves follow, as their own words in the code have them.\n"


def listed() -> str:
    """All sections."""
    return "".join(section(rule) for rule in LINT_RULES)


def section(rule: LintRule) -> str:
    mends = ", with a patch" if rule.mends else ""
    # A literal that is broken over two lines is still one.
    text = textwrap.fill(rule.explanation, 118, break_long_words=False, break_on_hyphens=False)
    return f"\n{rule.id}\n{'-' * len(rule.id)}\n\n**{rule.title}** ({rule.severity.value}{mends})\n\n{text}\n"


def main() -> None:
    before = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(before + MARK + listed())


if __name__ == "__main__":
    main()
