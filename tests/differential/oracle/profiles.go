// SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// defaultProfile is the name of what kube-scheduler does without a configuration.
const defaultProfile = "LowNodeUtilization"

// Configuration files of the profiles that OpenShift offers by these names. All nodes are looked at, because a
// verdict is about all of them; the scheduler's own sampling begins at 100 nodes.
var configurations = map[string]string{
	defaultProfile: `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
`,
	"HighNodeUtilization": `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
      enabled: [{name: NodeResourcesFit, weight: 5}]
`,
	"NoScoring": `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
profiles:
- plugins:
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}]}
`,
}

// loadProfile gives the defaulted configuration, as the command kube-scheduler --config would have read it.
func loadProfile(name string) (*config.KubeSchedulerConfiguration, error) {
	if name == "" {
		name = defaultProfile
	}
	text, known := configurations[name]
	if !known {
		return nil, fmt.Errorf("there is no profile %q", name)
	}
	loaded := &config.KubeSchedulerConfiguration{}
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDecoder(), []byte(text), loaded); err != nil {
		return nil, fmt.Errorf("reading profile %s: %w", name, err)
	}
	return loaded, nil
}
