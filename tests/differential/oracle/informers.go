// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// The scheduler is built around a client. Nothing of what the oracle runs calls it, and there is nobody to answer.
var client = kubernetes.NewForConfigOrDie(&rest.Config{Host: "https://nobody.invalid"})

// newInformers gives a factory whose informers hold a case's objects from the beginning, with nothing to wait for.
func newInformers(c *cluster) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, 0)
	for list, kind := range kinds {
		objects := c.objects[list]
		if list == "pods" {
			objects = withoutFinished(objects)
		}
		factory.InformerFor(kind.empty(), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return newFilledInformer(kind.empty(), objects)
		})
	}
	return factory
}

// withoutFinished does what the field selector of the scheduler's own pod informer asks the API server for.
func withoutFinished(pods []runtime.Object) []runtime.Object {
	var running []runtime.Object
	for _, pod := range pods {
		if phase := pod.(*v1.Pod).Status.Phase; phase != v1.PodSucceeded && phase != v1.PodFailed {
			running = append(running, pod)
		}
	}
	return running
}

// filledInformer is an informer after its first list: its store is full, and a new handler hears of every object at once.
// The rest of the interface is an ordinary informer that is never started.
type filledInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func newFilledInformer(example runtime.Object, objects []runtime.Object) *filledInformer {
	indexer := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range objects {
		if err := indexer.Add(object); err != nil {
			panic(err) // The key function fails on no API object.
		}
	}
	return &filledInformer{cache.NewSharedIndexInformer(nil, example, 0, nil), indexer}
}

func (f *filledInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range f.indexer.List() {
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (f *filledInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *filledInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

func (f *filledInformer) AddIndexers(indexers cache.Indexers) error {
	have := f.indexer.GetIndexers()
	missing := cache.Indexers{}
	for name, index := range indexers {
		if _, known := have[name]; !known {
			missing[name] = index
		}
	}
	return f.indexer.AddIndexers(missing)
}

func (f *filledInformer) GetStore() cache.Store               { return f.indexer }
func (f *filledInformer) GetIndexer() cache.Indexer           { return f.indexer }
func (f *filledInformer) HasSynced() bool                     { return true }
func (f *filledInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (f *filledInformer) Run(stop <-chan struct{})            { <-stop }
func (f *filledInformer) RunWithContext(ctx context.Context)  { <-ctx.Done() }

// synced is a registration, and a sign, of what has happened already.
type synced struct{}

var past = func() chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

func (synced) HasSynced() bool                     { return true }
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) Name() string                        { return reflect.TypeOf(synced{}).Name() }
func (synced) Done() <-chan struct{}               { return past }
