"""All-reduce, built from send and receive: one file for each way to do it.

    import collectives.ring
    collectives.ring.all_reduce(tensor)     # as dist.all_reduce(tensor): a sum, in place

naive: gather at rank 0, then broadcast.  tree: the same in log2 steps.  ring: every rank sends
a part to its neighbour, all at the same time.  interleaved_ring: the same in an order that leaves
the instance at every hop.  hierarchical: intra-node first, then inter-node.  mini_herring: the
same by servers, one on each instance.

placement: which rank is on which instance.  wire: the calls that they are made of.  timing: how
long they take.  tiers: how long a message takes, intra-node and inter-node.
"""
