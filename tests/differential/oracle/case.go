// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// Case is a cluster and the pods asked about, each on its own against the same cluster.
type Case struct {
	// Objects by list name; the names are those of `kinds`.
	Lists map[string][]json.RawMessage `json:"lists"`
	Asked []json.RawMessage            `json:"asked"`
	// One of `profiles`; empty for the default.
	Profile string `json:"profile,omitempty"`
	// Whether the nodes that fit are to be scored.
	Scores bool `json:"scores,omitempty"`
}

// Answer is the verdict on one pod.
type Answer struct {
	Fit []string `json:"fit"`
	// Sorted reasons by node.
	Unfit map[string][]string `json:"unfit"`
	// What the scheduler says when no node fits, without the sentence on preemption; else empty.
	Message string `json:"message"`
	// Scheduling gates that hold the pod back; the rest is answered as if they were gone.
	Gated []string `json:"gated,omitempty"`
	// Weighted sums by node that fits.
	Scores map[string]int64 `json:"scores,omitempty"`
	// The scheduler's own failure on this pod, as opposed to a refusal by nodes.
	Error string `json:"error,omitempty"`
}

// cluster is a case whose objects are decoded.
type cluster struct {
	Case
	objects map[string][]runtime.Object
	asked   []*v1.Pod
}

func decodeCase(line []byte) (*cluster, error) {
	c := &cluster{objects: map[string][]runtime.Object{}}
	if err := strict(line, &c.Case); err != nil {
		return nil, fmt.Errorf("reading the case: %w", err)
	}
	for list, texts := range c.Lists {
		kind, known := kinds[list]
		if !known {
			return nil, fmt.Errorf("reading the case: there is no list %q", list)
		}
		for i, text := range texts {
			object := kind.empty()
			if err := strict(text, object); err != nil {
				return nil, fmt.Errorf("reading %s[%d]: %w", list, i, err)
			}
			c.objects[list] = append(c.objects[list], object)
		}
	}
	for i, text := range c.Case.Asked {
		pod := &v1.Pod{}
		if err := strict(text, pod); err != nil {
			return nil, fmt.Errorf("reading asked[%d]: %w", i, err)
		}
		c.asked = append(c.asked, pod)
	}
	return c, nil
}

// strict refuses unknown fields: a misspelt one would make a case harmless without a sign.
func strict(text []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(text, into)
	if err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	return err
}
