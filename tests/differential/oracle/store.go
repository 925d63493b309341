// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"

	// Registers defaults and conversions of the groups whose kinds a case can list.
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// storeLine does to every object of a case what the API server does to one that is created: defaults, merged
// label keys, validation. Status and metadata stay as given, since those come later in an object's life.
func storeLine(line []byte) (any, error) {
	c, err := decodeCase(line)
	if err != nil {
		return nil, err
	}
	for list, objects := range c.objects {
		for i, object := range objects {
			if c.Lists[list][i], err = store(object, kinds[list].strategy); err != nil {
				return nil, fmt.Errorf("storing %s[%d]: %w", list, i, err)
			}
		}
	}
	for i, pod := range c.asked {
		if c.Case.Asked[i], err = store(pod, kinds["pods"].strategy); err != nil {
			return nil, fmt.Errorf("storing asked[%d]: %w", i, err)
		}
	}
	return c.Case, nil
}

func store(object runtime.Object, strategy rest.RESTCreateStrategy) ([]byte, error) {
	given := object.DeepCopyObject()
	legacyscheme.Scheme.Default(object)
	if pod, ok := object.(*v1.Pod); ok && pod.Spec.Priority == nil {
		// Admission sets it on every pod.
		pod.Spec.Priority = ptr.To[int32](0)
	}
	if strategy != nil {
		if err := prepare(object, strategy); err != nil {
			return nil, err
		}
	}
	keepStatus(given, object)
	return json.Marshal(object)
}

// prepare runs the strategy on the internal version of the object and writes the outcome back into it.
func prepare(object runtime.Object, strategy rest.RESTCreateStrategy) error {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return err
	}
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	meta := internal.(metav1.Object)
	metadata := *meta.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	ctx := context.Background()
	strategy.PrepareForCreate(ctx, internal)
	// A pod that is bound, ended or being deleted was none of it at its creation.
	if pod, ok := internal.(*core.Pod); ok {
		bound := pod.Spec.NodeName
		pod.Spec.NodeName = ""
		defer func() { object.(*v1.Pod).Spec.NodeName = bound }()
	}
	meta.SetDeletionTimestamp(nil)
	meta.SetDeletionGracePeriodSeconds(nil)
	if wrong := strategy.Validate(ctx, internal); len(wrong) > 0 {
		return fmt.Errorf("%s %s/%s is no valid object: %w", kinds[0].Kind, meta.GetNamespace(), meta.GetName(), wrong.ToAggregate())
	}
	*meta.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = metadata
	return legacyscheme.Scheme.Convert(internal, object, nil)
}

// keepStatus puts the given status, with its defaults, back in the place of a new object's.
func keepStatus(given, object runtime.Object) {
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	if !status.IsValid() {
		return
	}
	legacyscheme.Scheme.Default(given)
	status.Set(reflect.ValueOf(given).Elem().FieldByName("Status"))
}
