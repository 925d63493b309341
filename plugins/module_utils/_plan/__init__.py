# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is to be done, as a value that people read, approve and store, and that everything else obeys.

plan.py        the plan: actions, what they wait for (the fewest, with exceptions), and what cannot be done
document.py    the plan as JSON, its hash, and what is refused as no plan
remainder.py   what is left of a plan once some of it has ended, what of it may begin, one after the other, and whose
               turn it is
difference.py  two plans compared, in words

What is left in the light of a snapshot, and whether that is still right, takes the scheduler: in_force.py and review.py
of `_planner`, which say so in the words of difference.py.
"""

from __future__ import annotations
