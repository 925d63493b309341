# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.blockers.contract import NoTargetPod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.configuration import Configuration, Migrations
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.migration_target import target_pod
from ansible_collections.virtops.kubevirt.plugins.module_utils._kubevirt.namespaces import Namespace, Namespaces

from unit.plugins.module_utils._kubevirt.machines import launcher, node, vmi

Object = dict[str, Any]
VENDOR = "cpu-vendor.node.kubevirt.io/Intel"
HOST = "kubernetes.io/hostname"
NEW_MODEL = "cpu-model-migration.node.kubevirt.io/Icelake"
HOST_MODEL = {"cpu": {"model": "host-model"}}
DISK: Object = {"name": "system", "containerDisk": {"image": "registry.example:5000/a/disk:3"}}


def host(*more: str, vendor: bool = True) -> Object:
    found = node()
    found["metadata"]["labels"] |= dict.fromkeys([*([VENDOR] if vendor else []), *more], "true")
    return found


def ask(
    machine: Object,
    source: Object | None = None,
    source_node: Object | None = None,
    *,
    configuration: Configuration | None = None,
    lists: Any = None,
    added: Object | None = None,
) -> Any:
    return target_pod(
        machine,
        source or launcher(machine),
        source_node or host(),
        configuration or Configuration(),
        Namespaces(lists or {}).named("shop"),
        added,
    )


def selector(found: Object | NoTargetPod) -> dict[str, str]:
    assert not isinstance(found, NoTargetPod), found
    chosen: dict[str, str] = found["spec"]["nodeSelector"]
    return chosen


class TestSelector:
    def test_what_the_pod_was_pinned_to_is_forgotten(self) -> None:
        machine = vmi(nodeSelector={"rack": "2"})
        source = launcher(machine, nodeSelector={HOST: "n1", "rack": "1", VENDOR: "true"})
        assert selector(ask(machine, source)) == {
            "kubevirt.io/schedulable": "true",
            "kubernetes.io/arch": "amd64",
            "rack": "2",
            VENDOR: "true",
        }

    def test_the_vmi_wins_over_what_the_migration_adds(self) -> None:
        found = selector(ask(vmi(nodeSelector={"rack": "2"}), added={"rack": "1", "zone": "a"}))
        assert (found["rack"], found["zone"]) == ("2", "a")

    def test_an_added_vendor_replaces_that_of_the_source(self) -> None:
        found = selector(ask(vmi(), added={"cpu-vendor.node.kubevirt.io/AMD": "true"}))
        assert VENDOR not in found

    def test_a_node_without_a_vendor_asks_for_none(self) -> None:
        assert not [key for key in selector(ask(vmi(), source_node=host(vendor=False))) if "vendor" in key]


class TestHostModel:
    def test_the_first_migration_asks_for_what_the_node_is(self) -> None:
        source_node = host(
            "host-model-cpu.node.kubevirt.io/Icelake", "host-model-required-features.node.kubevirt.io/fsrm"
        )
        found = selector(ask(vmi(domain=HOST_MODEL), source_node=source_node))
        assert found[NEW_MODEL] == found["cpu-feature.node.kubevirt.io/fsrm"] == "true"

    def test_later_ones_ask_for_the_same_again(self) -> None:
        machine = vmi(domain=HOST_MODEL)
        source = launcher(machine, nodeSelector={NEW_MODEL: "true", "cpu-feature.node.kubevirt.io/fsrm": "true"})
        found = selector(ask(machine, source, host("host-model-cpu.node.kubevirt.io/Skylake")))
        assert NEW_MODEL in found
        assert "cpu-model-migration.node.kubevirt.io/Skylake" not in found

    def test_a_required_feature_passes_for_an_earlier_migration(self) -> None:
        machine = vmi(domain={"cpu": {"model": "host-model", "features": [{"name": "aes"}]}})
        source = launcher(machine, nodeSelector={"cpu-feature.node.kubevirt.io/aes": "true"})
        found = selector(ask(machine, source, host("host-model-cpu.node.kubevirt.io/Icelake")))
        assert NEW_MODEL not in found

    def test_a_named_model_does_not_ask(self) -> None:
        found = selector(
            ask(vmi(domain={"cpu": {"model": "Haswell"}}), source_node=host("host-model-cpu.node.kubevirt.io/Icelake"))
        )
        assert NEW_MODEL not in found


class TestNone:
    """Why there is no target pod, and when there is one all the same."""

    @pytest.mark.parametrize("domain", [{}, HOST_MODEL])
    def test_the_node_is_gone(self, domain: Object) -> None:
        machine = vmi(domain=domain)
        found = target_pod(machine, launcher(machine), None, Configuration(), Namespace())
        assert found == NoTargetPod("source-node-unknown", "its node n1 does not exist", "restart it")

    def test_the_node_is_not_needed_where_a_vendor_is_named(self) -> None:
        machine = vmi(nodeSelector={VENDOR: "true"})
        assert selector(target_pod(machine, launcher(machine), None, Configuration(), Namespace()))

    def test_the_vmi_runs_nowhere(self) -> None:
        machine = vmi(status={"nodeName": None})
        found = target_pod(machine, launcher(machine), None, Configuration(), Namespace())
        assert found == NoTargetPod("source-node-unknown", "it runs on no node", "wait until it runs")

    def test_the_node_does_not_tell_its_cpu(self) -> None:
        found = ask(vmi(domain=HOST_MODEL))
        assert found.id == "host-model-unknown"
        assert "n1 has no label host-model-cpu.node.kubevirt.io/" in found.problem

    @pytest.mark.parametrize("context", [None, "s0:c1"])
    def test_the_selinux_context_is_missing_or_wrong(self, context: str | None) -> None:
        machine = vmi(status={"selinuxContext": context})
        assert ask(machine).id == "selinux-context-unknown"
        careless = Configuration(migrations=Migrations(match_selinux_level=False))
        assert selector(target_pod(machine, launcher(machine), host(), careless, Namespace()))

    def test_a_whole_selinux_context(self) -> None:
        assert selector(ask(vmi(status={"selinuxContext": "system_u:object_r:container_file_t:s0:c1,c2"})))

    def test_an_image_without_a_digest(self) -> None:
        machine = vmi(volumes=[DISK])
        source = launcher(machine)
        source["status"]["containerStatuses"] = [{"name": "volumesystem", "imageID": "docker://abc"}]
        assert ask(machine, source).id == "image-digest-unknown"


class TestRest:
    def test_it_stays_off_its_own_node_and_keeps_its_other_wishes(self) -> None:
        term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["kubevirt.io/created-by"]}
        wishes = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        found = ask(vmi(affinity=wishes))["spec"]["affinity"]["podAntiAffinity"]
        others, own = found["requiredDuringSchedulingIgnoredDuringExecution"]
        assert others["labelSelector"]["matchExpressions"] == [
            {"key": "kubevirt.io/created-by", "operator": "NotIn", "values": ["uid-db"]}
        ]
        assert own == {"topologyKey": HOST, "labelSelector": {"matchLabels": {"kubevirt.io/created-by": "uid-db"}}}

    def test_labels_are_those_that_the_vmi_has_now(self) -> None:
        machine = vmi()
        source = launcher(machine)
        source["metadata"]["labels"] |= {
            "topology.kubernetes.io/zone": "a",
            "removed": "yes",
            "app": "before",
            "kubevirt.io/migrationJobUID": "u1",
            "security.istio.io/tlsMode": "istio",
        }
        machine["metadata"]["labels"] |= {"kubevirt.io": "mine", "new": "yes"}
        expected = {
            "app": "db",
            "new": "yes",
            "kubevirt.io": "virt-launcher",
            "kubevirt.io/created-by": "uid-db",
            "kubevirt.io/migrationJobUID": "",
            "vm.kubevirt.io/name": "db",
            "vmi.kubevirt.io/id": "db",
        }
        assert ask(machine, source)["metadata"]["labels"] == expected
        machine["metadata"]["annotations"]["sidecar.istio.io/inject"] = "true"
        mesh = {"sidecar.istio.io/inject": "true", "security.istio.io/tlsMode": "istio"}
        assert ask(machine, source)["metadata"]["labels"] == {**expected, **mesh}

    def test_tolerations_are_the_vmis_and_those_of_admission(self) -> None:
        given = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}
        machine = vmi(tolerations=[{"key": "new"}])
        found = ask(machine, launcher(machine, tolerations=[{"key": "old"}, given]))
        assert found["spec"]["tolerations"] == [{"key": "new"}, given]

    def test_spread_is_asked_for_with_the_pods_own_labels(self) -> None:
        constraint = {"topologyKey": HOST, "labelSelector": {}, "matchLabelKeys": ["app"]}
        machine = vmi(topologySpreadConstraints=[constraint])
        stale = {**constraint, "labelSelector": {"matchLabels": {"app": "before"}}}
        (found,) = ask(machine, launcher(machine, topologySpreadConstraints=[stale]))["spec"][
            "topologySpreadConstraints"
        ]
        assert found["labelSelector"] == {"matchExpressions": [{"key": "app", "operator": "In", "values": ["db"]}]}

    def test_it_is_a_pod_of_its_own_on_no_node(self) -> None:
        machine = vmi()
        source = launcher(machine, priority=7)
        found = ask(machine, source)
        assert "nodeName" not in found["spec"]
        assert "uid" not in found["metadata"]
        assert found["metadata"]["name"] != source["metadata"]["name"]
        assert found["spec"]["priority"] == 7
        assert found["spec"]["containers"] == source["spec"]["containers"]

    def test_images_of_disks_are_the_very_same(self) -> None:
        machine = vmi(volumes=[DISK])
        containers = [{"name": "compute"}, {"name": "volumesystem", "image": "registry.example:5000/a/disk:3"}]
        source = launcher(machine, containers=containers)
        source["status"]["containerStatuses"] = [
            {"name": "volumesystem", "imageID": "registry.example:5000/a/disk@sha256:0ab"},
            {"name": "system", "imageID": "unrelated"},
        ]
        found = ask(machine, source)["spec"]["containers"]
        assert found == [
            {"name": "compute"},
            {"name": "volumesystem", "image": "registry.example:5000/a/disk@sha256:0ab"},
        ]

    def test_images_that_are_not_told_stay(self) -> None:
        machine = vmi(volumes=[DISK])
        source = launcher(machine)
        source["status"]["containerStatuses"] = [{"name": "volumesystem"}]
        assert ask(machine, source)["spec"]["containers"] == source["spec"]["containers"]


class TestImageVolumes:
    """Images of disks as volumes of the pod, by a feature gate."""

    GATE = Configuration(feature_gates=frozenset({"ImageVolume"}))
    IMAGE = "registry.example:5000/a/disk"
    BY_DIGEST = f"{IMAGE}@sha256:0ab"

    def source(self, machine: Object, reference: str) -> Object:
        """A pod as KubeVirt makes it with the gate: one that was started, or has been migrated."""
        disk = {"name": "system", "image": {"reference": reference, "pullPolicy": "Always"}}
        launcher_volume = {"name": "launcher-volume", "image": {"reference": "launcher"}}
        before = "@" not in reference
        return launcher(
            machine,
            volumes=[disk, *([launcher_volume] if before else []), {"name": "scratch", "emptyDir": {}}],
            initContainers=[{"name": "guest-console-log"}, *([{"name": "volumesystem"}] if before else [])],
        )

    def ask(self, source: Object, configuration: Configuration = GATE) -> Any:
        return ask(vmi(volumes=[DISK]), source, configuration=configuration)

    def check(self, found: Any) -> None:
        """No digest has to be found out any more."""
        volumes = {volume["name"]: volume for volume in found["spec"]["volumes"]}
        assert volumes.keys() == {"system", "scratch"}
        assert volumes["system"]["image"]["reference"] == self.BY_DIGEST
        assert [entry["name"] for entry in found["spec"]["initContainers"]] == ["guest-console-log"]

    def test_the_first_migration_learns_the_digest_of_a_container_that_has_ended(self) -> None:
        source = self.source(vmi(), f"{self.IMAGE}:3")
        source["status"]["initContainerStatuses"] = [{"name": "volumesystem", "imageID": self.BY_DIGEST}]
        found = self.ask(source)
        self.check(found)
        assert found["spec"]["volumes"][0]["image"]["pullPolicy"] == "Always"

    def test_later_ones_ask_for_it_again(self) -> None:
        self.check(self.ask(self.source(vmi(), self.BY_DIGEST)))

    def test_a_digest_that_nobody_tells_is_not_known(self) -> None:
        source = self.source(vmi(), f"{self.IMAGE}:3")
        found = self.ask(source)["spec"]
        assert found["volumes"] == source["spec"]["volumes"]
        assert found["initContainers"] == source["spec"]["initContainers"]
        source["status"]["initContainerStatuses"] = [{"name": "volumesystem", "imageID": "docker://abc"}]
        assert self.ask(source).id == "image-digest-unknown"

    def test_without_the_gate_containers_that_have_ended_do_not_count(self) -> None:
        source = self.source(vmi(), f"{self.IMAGE}:3")
        source["status"]["initContainerStatuses"] = [{"name": "volumesystem", "imageID": "docker://abc"}]
        assert not isinstance(self.ask(source, Configuration()), NoTargetPod)

    def test_the_gate_turns_containers_into_volumes(self) -> None:
        disks = [{"name": "compute"}, {"name": "volumesystem", "image": f"{self.IMAGE}:3"}]
        brought = [{"name": "guest-console-log"}, {"name": "container-disk-binary"}, {"name": "volumesystem-init"}]
        volumes = [{"name": "scratch", "emptyDir": {}}]
        source = launcher(vmi(), containers=disks, initContainers=brought, volumes=volumes)
        source["status"]["containerStatuses"] = [{"name": "volumesystem", "imageID": self.BY_DIGEST}]
        found = self.ask(source)
        self.check(found)
        assert [entry["name"] for entry in found["spec"]["containers"]] == ["compute"]

    def test_without_the_gate_volumes_turn_into_containers(self) -> None:
        found = self.ask(self.source(vmi(), self.BY_DIGEST), Configuration(version="v1.8.4"))["spec"]
        assert [volume["name"] for volume in found["volumes"]] == ["scratch"]
        assert {"name": "volumesystem", "image": DISK["containerDisk"]["image"]}.items() <= found["containers"][
            1
        ].items()
        brought = ["guest-console-log", "container-disk-binary", "volumesystem-init"]
        assert [entry["name"] for entry in found["initContainers"]] == brought


class TestState:
    """What becomes of the claim that keeps a guest's vTPM or EFI variables."""

    VOLUMES = (
        {"name": "vm-state", "persistentVolumeClaim": {"claimName": "state-1"}},
        {"name": "scratch", "emptyDir": {}},
    )

    def machine(self, *modes: str, name: str = "persistent-state-for-db") -> Object:
        info = {"claimName": "state-1", "accessModes": list(modes)}
        return vmi(
            domain={"devices": {"tpm": {"persistent": True}}},
            status={"volumeStatus": [{"name": name, "persistentVolumeClaimInfo": info}]},
        )

    def volumes(self, machine: Object) -> list[str]:
        found = ask(machine, launcher(machine, volumes=list(self.VOLUMES)))["spec"]["volumes"]
        return [volume["name"] for volume in found]

    def test_one_that_both_pods_can_mount_goes_along(self) -> None:
        assert self.volumes(self.machine("ReadWriteMany")) == ["vm-state", "scratch"]

    @pytest.mark.parametrize("modes", [(), ("ReadWriteOnce",), ("ReadWriteOnce", "ReadWriteMany")])
    def test_another_is_replaced_by_a_new_one(self, modes: tuple[str, ...]) -> None:
        assert self.volumes(self.machine(*modes)) == ["scratch"]

    def test_it_is_not_known(self) -> None:
        assert ask(self.machine("ReadWriteMany", name="data")).id == "state-claim-unknown"


def test_its_sizes_are_calculated_anew() -> None:
    machine = vmi(domain={"cpu": {"sockets": 8}})
    source = launcher(machine, containers=[{"name": "compute", "image": "launcher", "resources": {}}])
    (found,) = ask(machine, source, configuration=Configuration(version="v1.8.4"))["spec"]["containers"]
    assert found["image"] == "launcher"
    assert found["resources"]["requests"]["cpu"] == "800m"


BOXED: Object = {
    "metadata": {"name": "boxed"},
    "overhead": {"podFixed": {"cpu": "50m"}},
    "scheduling": {"nodeSelector": {"boxes": "yes"}, "tolerations": [{"key": "boxed", "operator": "Exists"}]},
}
BOXES = Configuration(version="v1.8.4", runtime_class="boxed")


class TestRuntimeClass:
    """What admission makes of it, which is no part of the VMI."""

    def spec(self, configuration: Configuration, *classes: Object, **before: Any) -> Object:
        machine = vmi(tolerations=[{"key": "own"}])
        found = ask(
            machine, launcher(machine, **before), configuration=configuration, lists={"runtimeclasses": classes}
        )
        spec: Object = found["spec"]
        return spec

    @pytest.mark.parametrize("configuration", [BOXES, Configuration()])
    @pytest.mark.parametrize("overhead", [{}, {"cpu": "1"}])
    def test_nodes_tolerations_and_overhead(self, configuration: Configuration, overhead: Object) -> None:
        found = self.spec(configuration, BOXED, runtimeClassName="boxed", overhead=overhead)
        assert found["nodeSelector"]["boxes"] == "yes"
        assert found["tolerations"] == [{"key": "own"}, {"key": "boxed", "operator": "Exists"}]
        assert (found["runtimeClassName"], found["overhead"]) == ("boxed", {"cpu": "50m"})

    def test_the_one_that_is_configured_now_counts(self) -> None:
        found = self.spec(BOXES, BOXED, runtimeClassName="older", overhead={"cpu": "1"})
        assert (found["runtimeClassName"], found["overhead"]) == ("boxed", {"cpu": "50m"})
        none = self.spec(Configuration(version="v1.8.4"), BOXED, runtimeClassName="boxed", overhead={"cpu": "1"})
        assert not {"runtimeClassName", "overhead"} & none.keys()
        assert "boxes" not in none["nodeSelector"]

    def test_of_one_that_is_not_known_the_overhead_stays(self) -> None:
        found = self.spec(BOXES, runtimeClassName="boxed", overhead={"cpu": "1"})
        assert (found["runtimeClassName"], found["overhead"]) == ("boxed", {"cpu": "1"})
