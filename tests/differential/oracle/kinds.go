// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

// kind is what a list of a case holds.
type kind struct {
	empty func() runtime.Object
	// What the API server does with a new object; nil for the kinds of which the scheduler reads nothing but a selector.
	strategy rest.RESTCreateStrategy
}

var kinds = map[string]kind{
	"nodes":                  {func() runtime.Object { return &v1.Node{} }, node.Strategy},
	"pods":                   {func() runtime.Object { return &v1.Pod{} }, pod.Strategy},
	"namespaces":             {func() runtime.Object { return &v1.Namespace{} }, namespace.Strategy},
	"pvcs":                   {func() runtime.Object { return &v1.PersistentVolumeClaim{} }, persistentvolumeclaim.Strategy},
	"pvs":                    {func() runtime.Object { return &v1.PersistentVolume{} }, persistentvolume.Strategy},
	"storageclasses":         {func() runtime.Object { return &storagev1.StorageClass{} }, storageclass.Strategy},
	"csinodes":               {func() runtime.Object { return &storagev1.CSINode{} }, csinode.Strategy},
	"csidrivers":             {func() runtime.Object { return &storagev1.CSIDriver{} }, csidriver.Strategy},
	"csistoragecapacities":   {func() runtime.Object { return &storagev1.CSIStorageCapacity{} }, csistoragecapacity.Strategy},
	"volumeattachments":      {func() runtime.Object { return &storagev1.VolumeAttachment{} }, volumeattachment.Strategy},
	"services":               {func() runtime.Object { return &v1.Service{} }, nil},
	"replicationcontrollers": {func() runtime.Object { return &v1.ReplicationController{} }, nil},
	"replicasets":            {func() runtime.Object { return &appsv1.ReplicaSet{} }, nil},
	"statefulsets":           {func() runtime.Object { return &appsv1.StatefulSet{} }, nil},
}
