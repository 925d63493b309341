# SPDX-FileCopyrightText: Contributors to the virtops.kubevirt project
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every target makes ready what it needs: Python 3.11, 3.12 or 3.13, make and git are enough to begin with.

STACK ?= 2.19
SECONDS ?= 600
TIMES ?= 10
TESTBED ?= default

TOOLS := PYTHONPATH=tests PYTHONDONTWRITEBYTECODE=1 tests/tools/python -m tools
LAUNCHER := tests/testbed/testbed --name $(TESTBED)
PARTS := build lint types docs unit sanity differential integration molecule

.DEFAULT_GOAL := help
.PHONY: help demo test test-all search steady $(PARTS) format generate lock python testbed testbed-up testbed-down testbed-bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Parts run whole and on ansible-core 2.19 unless told: make integration STACK=2.21 GATE=1. Caches: the folder VIRTOPS_CACHE, else ~/.cache/virtops.kubevirt."

demo: ## maintain a whole cluster on this machine, from nothing, and watch
	@$(TOOLS) show demo --stack $(STACK)

test: ## the gate, which CI runs: one of everything, in minutes
	@$(TOOLS) test

test-all: ## everything, and a few parts on ansible-core 2.21 as well
	@$(TOOLS) test-all

steady: ## run TESTS on a testbed ten times, five of them beside busy loops (all tests of the gate without TESTS)
	@$(TOOLS) steady --stack $(STACK) --times $(TIMES) -- $(or $(TESTS),tests/integration -m gate)

search: ## look for what no test knows yet, for SECONDS (600), from SEED (drawn)
	@$(TOOLS) search --stack $(STACK) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

build: ## build the testbed's binaries
lint: ## check formatting and style of all files
types: ## check types
docs: ## check the documentation of modules, plugins and roles
unit: ## tests without a cluster
sanity: ## ansible-test sanity
differential: ## compare placement verdicts with the real kube-scheduler
integration: ## tests on a testbed
molecule: ## Molecule scenarios on a testbed

$(PARTS):
	@$(TOOLS) run $@ --stack $(STACK) $(if $(GATE),--gate)

format: ## rewrite Python files in the project's format
	@$$($(TOOLS) python --stack $(STACK)) -m ruff format
	@$$($(TOOLS) python --stack $(STACK)) -m ruff check --fix

generate: ## write what is made from the table of rights
	@PYTHONPATH=tests:.build/$(STACK) $$($(TOOLS) python --stack $(STACK)) -m generated

lock: ## pin the newest allowed packages into tests/tools/requirements/*.txt
	@$(TOOLS) lock

python: ## print the path of the Python that tests run with
	@$(TOOLS) python --stack $(STACK)

testbed: testbed-up ## same as testbed-up

testbed-up: ## start a KubeVirt testbed on this machine (TESTBED=name for a further one)
	@$(LAUNCHER) up

testbed-down: ## stop it and remove what it wrote
	@$(LAUNCHER) down

testbed-bench: ## measure the testbed: time to start, to scale, cost when idle
	@PYTHONPATH=tests $$($(TOOLS) python --stack $(STACK)) -m testbed.bench

clean: ## remove what the targets wrote into this folder; caches elsewhere stay
	rm -rf .build .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache
