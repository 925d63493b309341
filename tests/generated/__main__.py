# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make generate`: write the files that are made from the table of rights."""

from __future__ import annotations

import sys

from generated import files


def main() -> int:
    for path, text in files.stale().items():
        path.write_text(text)
        print(path.relative_to(files.REPOSITORY))
    return 0


if __name__ == "__main__":
    sys.exit(main())
