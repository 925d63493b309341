# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real control plane of Kubernetes and KubeVirt on this machine, whose nodes and guests are simulated.

For those who use one:

cli.py           the command line
__main__.py      the same by `python -m testbed`
handle.py        a testbed that is up, as tests see it
api.py           a client of its API server
watches.py       what that tells while something is done
waiting.py       waits for a condition, and says what for
nodes.py         worker nodes, as they present themselves
access.py        kubeconfigs with few rights
faults.py        what goes wrong when somebody wants it to
scenarios/       clusters to fill it with
bench.py         what it costs

How it comes up and goes:

cluster.py       up, down, and what is there
parts.py         its processes, and how each is started
processes.py     starts, finds and stops them
install.py       what virt-operator would install
stages/          what kwok makes of nodes and other pods
simulator/       virt-handler, virt-launcher and the guests
status.py        what is said of it

What it stands on:

home.py          its folder, and the caches that all share
build.py         its binaries, from pinned Go modules
binaries/        which modules, and what is installed of KubeVirt
gotoolchain.py   the Go that builds them
pki.py           its certificates and kubeconfigs
ports.py         its ports
locks.py         locks between processes
runs.py          which test run a process belongs to
"""
