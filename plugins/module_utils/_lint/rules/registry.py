# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules, in the order in which the documentation lists them. A new one is a file and a line here."""

from __future__ import annotations

from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.contract import LintRule
from ansible_collections.virtops.kubevirt.plugins.module_utils._lint.rules import (
    anti_affinity_fills_domains,
    bridge_binding,
    cpu_on_single_host,
    deprecated_labels,
    drain_exceeds_window,
    host_name_in_selector,
    migration_times_out,
    no_eviction_strategy,
    no_room_elsewhere,
    node_overcommitted,
    node_selector_matches_nothing,
    not_live_migratable,
    own_pod_blocks_migration,
    partner_blocks_migration,
    pdb_blind_to_vms,
    pdb_matches_nothing,
    pdb_never_allows,
    pdbs_overlap,
    pod_selector_matches_nothing,
    read_write_once_disk,
    several_rules_together,
    single_eligible_node,
    spread_stops_drain,
    topology_key_partial,
    topology_key_unknown,
    unknown_scheduler,
)

LINT_RULES: tuple[LintRule, ...] = (
    # Where a VM could go.
    own_pod_blocks_migration.RULE,
    anti_affinity_fills_domains.RULE,
    partner_blocks_migration.RULE,
    single_eligible_node.RULE,
    host_name_in_selector.RULE,
    cpu_on_single_host.RULE,
    no_room_elsewhere.RULE,
    node_overcommitted.RULE,
    spread_stops_drain.RULE,
    several_rules_together.RULE,
    # Whether it is there in time.
    migration_times_out.RULE,
    drain_exceeds_window.RULE,
    # Whether it can go at all.
    no_eviction_strategy.RULE,
    bridge_binding.RULE,
    read_write_once_disk.RULE,
    not_live_migratable.RULE,
    # Rules that do not do what they say.
    topology_key_unknown.RULE,
    topology_key_partial.RULE,
    node_selector_matches_nothing.RULE,
    pod_selector_matches_nothing.RULE,
    deprecated_labels.RULE,
    unknown_scheduler.RULE,
    # Disruption budgets.
    pdb_never_allows.RULE,
    pdb_blind_to_vms.RULE,
    pdbs_overlap.RULE,
    pdb_matches_nothing.RULE,
)
