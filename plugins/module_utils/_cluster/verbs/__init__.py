# Copyright: Contributors to the virtops.kubevirt project
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes something: each verb asks first whether it is done already, or is guarded by what it was asked for.

carrying_out.py  carries commands out, each as often as it may come
interruptions.py the part of it that stops and restarts
answers.py       what all commands are carried out with, and how a refusal becomes the answer to one
migrations.py    create, find and cancel migrations
cancellation.py  cancel the unfinished migrations of some VMIs
evacuations.py   withdraw what an eviction has made KubeVirt do
machines.py      stop, start and restart VMs through what brings them back
replica_sets.py  find, test, write and delete replica sets
nodes.py         read and write whole Node objects
namespaces.py    create an object in a namespace that may be missing
grants.py        write and remove what gives an account its rights
tokens.py        make tokens of service accounts, and tell what one is for
leases.py        read, write and delete Leases, and take and renew those of nodes
maintenance.py   cordon a node with an owner, and undo just that
held_nodes.py    takes the nodes of a batch so, and sees that they still are the owner's
run_lease.py     hold a run for one invocation of it, and see that it is still held
renewer.py       renews the Leases of a run as long as its ansible-playbook lives
run_store.py     what a run has to remember, kept in the cluster
run_memory.py    lets a run remember something while a task works

Every write: how it is sent, what makes a second time harmless, and how one sees that it was done when no answer tells.
"All of it": the object of that name has all that was asked for. "On its version": refused, with status 409, if somebody
has written since, and looked at anew. "By uid": of this very object. "Gone": or going, or another one of its name.

maintenance.begin        the cordon of a node with its mark, or the mark beside a cordon of somebody else: PATCH of the
                         node on its version; all of it. The first look tells what was before, whoever has written since
maintenance.end          uncordon, marks taken off, label `maintained`: one PATCH of the node on its version; all of it
nodes.label_nodes        PATCH of a node on its version, anew only where each label is as it was or as wanted; all of it
leases.Leases.write      a node or run is held: POST by name, or PUT on its version; all of it, a PUT just as it was
                         sent. What the server has added to is refused as outdated then, and ours by its holder
leases.Leases.release    DELETE on its version while its holder has it; gone, or another's
grants.store             POST by name, or PATCH; all of it, and no more in what was asked for
grants.unbind            PATCH of a binding on its version, anew with those who are in it by then; just these are in it.
                         Where nobody else is, DELETE by uid on its version; gone
grants.remove            DELETE by uid; gone
namespaces.create_in     the namespace: POST by name; there, whoever made it. Then the object in it
migrations.create        POST by the name of the attempt; all of it, or, after a refusal, its run, VMI and target
migrations.cancel        DELETE by uid; gone
evacuations.withdraw     PUT evacuate/cancel for one node; KubeVirt does not evacuate the VMI from it any more
evacuations.take_over    the two above, for each VMI that is still on the node
carrying_out.Verbs       an eviction: POST by uid, again only after the next look of the loop; the pod is gone
machines.request         PUT stop, restart or start, again only after the next look. A VM is not asked to end a VMI that
                         is going or elsewhere, or whose Stop it notes, nor to stop while it is halted; it is not asked
                         to start while a VMI, or a request for one, is there
machines.delete_vmi      a restart of what comes back by itself, or the stop of a replica: DELETE by uid; gone
machines.mark_vm         PATCH of a VM that is not halted, on its version; all of it. Then its note, PATCH of a key of
                         its own on the node; all of it
machines.mark_replica    PATCH of a replica set on its version, where each VMI counts once; all of it
machines.take_back       what was marked runs on: as take_mark_off, for one owner and VMI; not there, or another's
machines.start           besides the request, what the VM ran with, or Halted for one to be stopped again: PATCH, with
                         its mark, on its version, and none where that is so already; all of it
machines.take_mark_off   the note, PATCH of its key on the node; then the mark, PATCH on its version; not there
replica_sets.ReplicaSet  write: POST by name; all of it. Of template, size and pause: PUT on its version; just as it was
                         sent, or, where others have written, made again of what is there. delete: DELETE by uid; gone
run_store.RunStore       put: POST of chunks whose names tell their content; there. Then the head, POST by name, or PUT
                         on its version; all of it, or its digest. delete_all: DELETE by uid; gone
tokens.make_token        POST, simply again: nobody knows the first token, which runs out. So are reviews of rights
                         (transport/permissions.py), and dry runs, of which nothing is to be seen
"""

from __future__ import annotations
