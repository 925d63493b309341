// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"errors"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// answer says what the scheduler decides about a pod, and for every node why.
//
// The decision is Scheduler.SchedulePod's own. That function tells reasons only when no node fits, and scores never, so
// the plugins run once more, one extension point after the other; the two must not contradict each other.
func (j *judge) answer(ctx context.Context, pod *v1.Pod) (*Answer, error) {
	answer := &Answer{Fit: []string{}, Unfit: map[string][]string{}, Gated: j.gates(ctx, pod)}
	state := framework.NewCycleState()
	fitting, err := j.filter(ctx, state, pod, answer)
	if err != nil {
		// What was found before the failure depends on the order of the nodes. SchedulePod itself may never get to the
		// node that fails, if it needs no more nodes.
		return &Answer{Fit: []string{}, Unfit: map[string][]string{}, Gated: answer.Gated, Error: err.Error()}, nil
	}
	if j.scores && len(fitting) > 0 {
		if err := j.score(ctx, state, pod, fitting, answer); err != nil {
			answer.Error = err.Error()
		}
	}
	return answer, j.decide(ctx, pod, answer)
}

// gates names the scheduling gates that keep the pod out of the queue.
func (j *judge) gates(ctx context.Context, pod *v1.Pod) []string {
	var gates []string
	for _, plugin := range j.profile.PreEnqueuePlugins() {
		if plugin.Name() == names.SchedulingGates && !plugin.PreEnqueue(ctx, pod).IsSuccess() {
			for _, gate := range pod.Spec.SchedulingGates {
				gates = append(gates, gate.Name)
			}
		}
	}
	return gates
}

// filter fills in the nodes that fit and the reasons of the others.
func (j *judge) filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, answer *Answer) ([]fwk.NodeInfo, error) {
	allowed, status, cutters := j.profile.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	var fitting []fwk.NodeInfo
	for _, node := range j.nodes {
		reasons := status
		if status.IsSuccess() {
			info, err := j.snapshot.Get(node.Name)
			if err != nil {
				return nil, err
			}
			if allowed.AllNodes() || allowed.NodeNames.Has(node.Name) {
				reasons = j.profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
			} else {
				reasons = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(cutters)))
			}
			if reasons.IsSuccess() {
				fitting = append(fitting, info)
				answer.Fit = append(answer.Fit, node.Name)
				continue
			}
			if !reasons.IsRejected() {
				return nil, reasons.AsError()
			}
		}
		answer.Unfit[node.Name] = append([]string{}, reasons.Reasons()...)
		sort.Strings(answer.Unfit[node.Name])
	}
	sort.Strings(answer.Fit)
	return fitting, nil
}

// score fills in what the nodes that fit are worth; all the same when nothing scores.
func (j *judge) score(ctx context.Context, state fwk.CycleState, pod *v1.Pod, fitting []fwk.NodeInfo, answer *Answer) error {
	scores := map[string]int64{}
	if !j.profile.HasScorePlugins() {
		for _, name := range answer.Fit {
			scores[name] = 1
		}
		answer.Scores = scores
		return nil
	}
	if status := j.profile.RunPreScorePlugins(ctx, state, pod, fitting); !status.IsSuccess() {
		return status.AsError()
	}
	totals, status := j.profile.RunScorePlugins(ctx, state, pod, fitting)
	if !status.IsSuccess() {
		return status.AsError()
	}
	for _, total := range totals {
		scores[total.Name] = total.TotalScore
	}
	answer.Scores = scores
	return nil
}

// decide runs the real scheduling algorithm, takes its message, and fails when it contradicts what was found node by node.
func (j *judge) decide(ctx context.Context, pod *v1.Pod, answer *Answer) error {
	result, err := j.schedule(ctx, queued(pod))
	var unfit *framework.FitError
	switch {
	case errors.As(err, &unfit) || errors.Is(err, scheduler.ErrNoNodesAvailable):
		answer.Message = err.Error()
		if len(answer.Fit) > 0 {
			return fmt.Errorf("SchedulePod says %q, yet %v fit", err, answer.Fit)
		}
	case err != nil:
		// With two nodes to choose from, SchedulePod scores them, also where the case asks for no scores.
		if answer.Error == "" && j.scores {
			return fmt.Errorf("SchedulePod fails, unlike the plugins one by one: %w", err)
		}
	default:
		return j.confirm(result.SuggestedHost, answer)
	}
	return nil
}

// schedule runs the real scheduling algorithm.
func (j *judge) schedule(ctx context.Context, pod *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
	return j.scheduler.SchedulePod(ctx, j.profile, framework.NewCycleState(), pod)
}

// queued gives the pod as it comes out of the scheduling queue.
func queued(pod *v1.Pod) *framework.QueuedPodInfo {
	// A node that the pod was promised would be tried first and, if it fits, be the only one; the case asks about all.
	pod = pod.DeepCopy()
	pod.Status.NominatedNodeName = ""
	// Upstream goes on with a pod whose affinity it cannot parse, too.
	info, _ := framework.NewPodInfo(pod)
	return &framework.QueuedPodInfo{PodInfo: info}
}

// confirm checks that the node chosen is one of the best of those found to fit.
func (j *judge) confirm(host string, answer *Answer) error {
	for _, name := range answer.Fit {
		if name == host {
			for other, score := range answer.Scores {
				if score > answer.Scores[host] {
					return fmt.Errorf("SchedulePod chose %s with %d, yet %s has %d", host, answer.Scores[host], other, score)
				}
			}
			return nil
		}
	}
	return fmt.Errorf("SchedulePod chose %s, yet only %v fit", host, answer.Fit)
}
