# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever somebody has written into a cluster, it is one line on the terminal, and hides nothing."""

from __future__ import annotations

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.printable import brief, listed, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web\x1b[31m red\x1b[0m", "web�[31m red�[0m"),
        ("\x1b]0;title\x07after", "�]0;title�after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "�]8;;https://example.org�\\link�]8;;�\\"),
        ("\x1b]never ended", "�]never ended"),
        ("\x1bP+q544e\x1b\\dcs", "�P+q544e�\\dcs"),
        ("\x9b2Jcleared", "�2Jcleared"),
        ("\x1bcreset", "�creset"),
        ("one\r\ntwo\u2028three\tfour\u00a0five", "one two three four five"),
        ("bell\x07 null\x00 back\x08", "bell� null� back�"),
        ("\u202eesrever\u2066", "�esrever�"),
        ("half \ud800", "half �"),
        ("     indented", "     indented"),
        ("0/6 nodes are available – żółć 你好 ✓", "0/6 nodes are available – żółć 你好 ✓"),
    ],
)
def test_hostile_text_is_only_text(text: str, shown: str) -> None:
    assert printable(text) == printable(shown) == shown
    assert shown.isprintable()


def test_a_long_one_is_told_by_its_beginning() -> None:
    assert brief("\n" + "x" * 5000) == " " + "x" * 119


def test_of_many_the_first_are_told_and_how_many_more_there_are() -> None:
    names = list("abcdefghijklm")
    assert listed(names[:10], ", ") == "a, b, c, d, e, f, g, h, i, j"
    assert listed(names) == "a; b; c; d; e; f; g; h; i; j; and 3 more"
    assert listed(names, then=["as it is away"]).endswith("j; and 3 more; as it is away")
    assert listed([]) == ""
