// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

// Command manifests prints what virt-operator would install, as one JSON List:
// KubeVirt's own CRDs, RBAC, webhooks, control-plane workloads and their
// PodDisruptionBudgets. Taking them from KubeVirt's packages keeps the testbed
// equal to a real installation of the pinned version.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	virtv1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
	"kubevirt.io/kubevirt/pkg/virt-operator/util"
)

const namespace = "kubevirt"

// Variables from which KubeVirt derives the images of its workloads.
var images = map[string]string{
	util.VirtOperatorImageEnvName: "quay.io/kubevirt/virt-operator:v1.8.4",
	util.KubeVirtVersionEnvName:   "v1.8.4",
}

func crds() ([]runtime.Object, error) {
	constructors := []func() (*extv1.CustomResourceDefinition, error){
		components.NewKubeVirtCrd,
		components.NewVirtualMachineInstanceCrd,
		components.NewVirtualMachineCrd,
		components.NewPresetCrd,
		components.NewReplicaSetCrd,
		components.NewVirtualMachineInstanceMigrationCrd,
		components.NewVirtualMachinePoolCrd,
		components.NewVirtualMachineSnapshotCrd,
		components.NewVirtualMachineSnapshotContentCrd,
		components.NewVirtualMachineRestoreCrd,
		components.NewVirtualMachineExportCrd,
		components.NewVirtualMachineBackupCrd,
		components.NewVirtualMachineBackupTrackerCrd,
		components.NewVirtualMachineInstancetypeCrd,
		components.NewVirtualMachineClusterInstancetypeCrd,
		components.NewVirtualMachinePreferenceCrd,
		components.NewVirtualMachineClusterPreferenceCrd,
		components.NewMigrationPolicyCrd,
		components.NewVirtualMachineCloneCrd,
	}
	objects := make([]runtime.Object, 0, len(constructors))
	for _, construct := range constructors {
		crd, err := construct()
		if err != nil {
			return nil, fmt.Errorf("build a CustomResourceDefinition: %w", err)
		}
		objects = append(objects, crd)
	}
	return objects, nil
}

func rbacObjects() []runtime.Object {
	objects := rbac.GetAllCluster()
	objects = append(objects, rbac.GetAllApiServer(namespace)...)
	objects = append(objects, rbac.GetAllController(namespace, true)...)
	return append(objects, rbac.GetAllHandler(namespace)...)
}

func webhooks() []runtime.Object {
	return []runtime.Object{
		components.NewVirtAPIMutatingWebhookConfiguration(namespace),
		components.NewVirtLauncherPodMutatingWebhookConfiguration(namespace),
		components.NewVirtAPIValidatingWebhookConfiguration(namespace),
	}
}

func apiServices() []runtime.Object {
	var objects []runtime.Object
	for _, service := range components.NewVirtAPIAPIServices(namespace) {
		objects = append(objects, service)
	}
	return objects
}

func workloads() []runtime.Object {
	config := util.GetTargetConfigFromKV(&virtv1.KubeVirt{
		ObjectMeta: metav1.ObjectMeta{Name: "kubevirt", Namespace: namespace},
	})
	objects := []runtime.Object{components.NewHandlerDaemonSet(config, "", "", "")}
	for _, deployment := range []*appsv1.Deployment{
		components.NewApiServerDeployment(config, "", "", ""),
		components.NewControllerDeployment(config, "", "", ""),
	} {
		objects = append(objects, deployment, components.NewPodDisruptionBudgetForDeployment(deployment))
	}
	return objects
}

// typed fills in apiVersion and kind, which KubeVirt's constructors leave out for some types.
func typed(objects []runtime.Object) ([]runtime.Object, error) {
	for _, object := range objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", object, err)
		}
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return objects, nil
}

func run() error {
	for name, value := range images {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	for _, add := range []func(*runtime.Scheme) error{extv1.AddToScheme, aggregator.AddToScheme} {
		if err := add(scheme.Scheme); err != nil {
			return fmt.Errorf("register types: %w", err)
		}
	}
	objects, err := crds()
	if err != nil {
		return err
	}
	objects = append(objects, rbacObjects()...)
	objects = append(objects, components.NewKubeVirtPriorityClassCR())
	objects = append(objects, webhooks()...)
	objects = append(objects, apiServices()...)
	objects = append(objects, workloads()...)
	if objects, err = typed(objects); err != nil {
		return err
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
	return json.NewEncoder(os.Stdout).Encode(list)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}
