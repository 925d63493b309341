# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talk to the API server, and to files: what everything else stands on.

failure.py       the one exception of everything that reaches out of the process
client.py        requests to the API: JSON in, JSON out
line.py          the connection under them, and its credentials
dialling.py      makes that connection, by what options, variables and files say
conflicts.py     read, change and write again when somebody else was quicker
persistence.py   sends a request again: whether, when, and for how long
as_wanted.py     whether an object is as a request wanted it
paths.py         paths of the API
permissions.py   which permissions are missing, all at once, and what each is for
listing.py       whole lists in pages, projected while they are read
watch.py         a list that is kept up to date by watching it
collector.py     spares the garbage collector what it would search in vain
identity.py      which cluster answers
clock.py         how long ago something was, sleep included, and the clocks that a run goes by
private_file.py  files on disk, written as a whole or not at all, readable by their owner only
processes.py     tell processes apart, and whether they still live
translation.py   from what the client library raises to that exception
"""

from __future__ import annotations
