# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is to move is in the plan, and the run is known again by its name."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._model.migration import Migration
from ansible_collections.virtops.kubevirt.plugins.module_utils._model.prospect import MigrationRequest, Prospect
from ansible_collections.virtops.kubevirt.plugins.module_utils._planner.requests import plan_requests

from unit.plugins.module_utils._execution.moments import migration


def prospect(name: str, *migrations: Migration, node: str = "n1", target: str = "n2") -> Prospect:
    vmi = {"metadata": {"namespace": "shop", "name": name, "uid": f"uid-{name}"}, "status": {"nodeName": node}}
    selector = {"kubernetes.io/hostname": target}
    return Prospect(MigrationRequest("shop", name, target, {}), vmi, selector, frozenset({target}), migrations)


def run(*prospects: Prospect) -> str:
    return plan_requests(prospects).run


WEB, DB = prospect("web"), prospect("db")
FLYING, OVER = migration("web-1", "Running"), migration("web-1", "Failed")


def test_who_has_to_go_or_is_on_the_way_is_in_the_plan() -> None:
    back = prospect("cache", migration("cache-1", "Running", vmi="cache"), node="n2")
    (web, cache) = plan_requests([WEB, prospect("there", node="n2"), back]).actions
    assert (web.object.title, web.source, web.target) == ("shop/web", "n1", "n2")
    assert (web.selector, web.after) == ({"kubernetes.io/hostname": "n2"}, ())
    assert cache.object.title == "shop/cache"


def test_the_same_wishes_make_the_same_run() -> None:
    assert run(WEB, DB) == run(DB, WEB)
    assert run(WEB) == run(prospect("web", FLYING)) == run(WEB, prospect("there", node="n2"))


def test_other_wishes_make_another_run() -> None:
    others = [DB, prospect("web", target="n3"), prospect("web", OVER)]
    assert len({run(WEB), *map(run, others)}) == 4
