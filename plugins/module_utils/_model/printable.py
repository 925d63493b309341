# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that anybody may have written, such as reasons and holders, for a terminal.

What would steer it is shown in another's place and not removed: nobody is to hide what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_BREAKS = re.compile(r"[^\S ]+")
_MOST = 120
_LONGEST = 8_000
_MOST_LISTED = 10


def printable(text: object) -> str:
    """As one line that only says something: no control characters, none that turn the direction of writing."""
    line = _BREAKS.sub(" ", str(text))
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)


def brief(text: object) -> str:
    """Its beginning, for the middle of a sentence."""
    return printable(str(text)[:_MOST])


def sentence(text: object) -> str:
    """As a whole, for a message. Of what is longer than anybody reads, the beginning, and the end with the advice."""
    return printable(shortened(str(text), _LONGEST))


def listed(texts: Sequence[str], between: str = "; ", *, then: Sequence[str] = ()) -> str:
    """The first ones, and how many more there are: of a large cluster nobody reads them all in a sentence.

    then: what is told after them, all of it.
    """
    more = len(texts) - _MOST_LISTED
    return between.join([*texts[:_MOST_LISTED], *([f"and {more} more"] if more > 0 else []), *then])


def shortened(text: str, most: int) -> str:
    """Of what has more characters, that many: three quarters from its beginning, and the rest from its end."""
    left_out = len(text) - most
    if left_out <= 0:
        return text
    end = most // 4
    return f"{text[: most - end]} [{left_out} characters are left out] {text[-end:]}"
