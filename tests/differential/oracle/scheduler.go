// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// judge is a whole scheduler, as kube-scheduler builds it, that has heard of every object of one case.
type judge struct {
	scheduler *scheduler.Scheduler
	profile   framework.Framework
	snapshot  *internalcache.Snapshot
	nodes     []*v1.Node
	scores    bool
}

// newJudge builds a scheduler for one case; cancelling the context frees it. One for each case costs a millisecond
// and keeps a case from leaving anything behind for the next.
//
// Threads are the goroutines that share the nodes of one pod.
func newJudge(ctx context.Context, c *cluster, threads int) (*judge, error) {
	configuration, err := loadProfile(c.Profile)
	if err != nil {
		return nil, err
	}
	sched, err := scheduler.New(ctx, client, newInformers(c), nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(configuration.Profiles...),
		scheduler.WithPercentageOfNodesToScore(configuration.PercentageOfNodesToScore),
		scheduler.WithParallelism(int32(threads)),
	)
	if err != nil {
		return nil, fmt.Errorf("building the scheduler: %w", err)
	}
	profile := sched.Profiles[v1.DefaultSchedulerName]
	snapshot := profile.SnapshotSharedLister().(*internalcache.Snapshot)
	if err := sched.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return nil, fmt.Errorf("taking the snapshot: %w", err)
	}
	j := &judge{scheduler: sched, profile: profile, snapshot: snapshot, scores: c.Scores}
	for _, node := range c.objects["nodes"] {
		j.nodes = append(j.nodes, node.(*v1.Node))
	}
	return j, nil
}

func judgeLine(line []byte) (any, error) {
	c, err := decodeCase(line)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), quiet))
	defer cancel()
	// The cases run side by side, so one alone gains nothing by threads.
	j, err := newJudge(ctx, c, 1)
	if err != nil {
		return nil, err
	}
	answers := make([]*Answer, 0, len(c.asked))
	for _, pod := range c.asked {
		answer, err := j.answer(ctx, pod)
		if err != nil {
			return nil, fmt.Errorf("judging pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		answers = append(answers, answer)
	}
	return map[string]any{"answers": answers}, nil
}
