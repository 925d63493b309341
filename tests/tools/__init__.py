# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Makefile calls: the stacks, the parts of a test run on them, and the report at its end.

__main__.py      its command line

What is run:

parts.py         the parts of `make test` and `make test-all`
searching.py     those of `make search`
sanity.py        ansible-test, which insists on places of its own
steadiness.py    tests many times, half of them beside busy loops

How:

runner.py        runs parts, and shows what they say
again.py         pytest, with a second try for what failed
census.py        that no test got lost
failures.py      what failed, in few lines
machine.py       what the machine was like meanwhile
report.py        the end of it all

On what:

stacks.py        the pairs of ansible-core and Python
interpreters.py  where such a Python is
environment.py   its virtual environment and the collection's tree
workspace.py     where a part runs, and with which variables
lock.py          pins every package
requirements/    which, by stack
"""
