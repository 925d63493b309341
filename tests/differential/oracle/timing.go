// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
)

// timeLine measures what the scheduler's own algorithm takes for one pod, with the goroutines it uses by default. The
// snapshot is made before, and a first pod is scheduled unmeasured.
func timeLine(line []byte) (any, error) {
	c, err := decodeCase(line)
	if err != nil {
		return nil, err
	}
	if len(c.asked) == 0 {
		return nil, errors.New("timing the case: it asks about no pod")
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), quiet))
	defer cancel()
	j, err := newJudge(ctx, c, parallelize.DefaultParallelism)
	if err != nil {
		return nil, err
	}
	var pods []*framework.QueuedPodInfo
	for _, pod := range c.asked {
		pods = append(pods, queued(pod))
	}
	j.scheduleAll(ctx, pods[:1])
	started := time.Now()
	j.scheduleAll(ctx, pods)
	return map[string]float64{"seconds": time.Since(started).Seconds() / float64(len(pods))}, nil
}

// scheduleAll schedules the pods one after the other; a refusal takes its time just as a placement does.
func (j *judge) scheduleAll(ctx context.Context, pods []*framework.QueuedPodInfo) {
	for _, pod := range pods {
		_, _ = j.schedule(ctx, pod)
	}
}
