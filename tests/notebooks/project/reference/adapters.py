"""The instructor's solution."""

import ddp as ddp_module
import hierarchical
import ring
import sharded


def all_reduce(tensor, op):
    ring.all_reduce(tensor, op)


def get_ddp(module, bucket_bytes):
    return ddp_module.DDP(module, bucket_bytes)


def ddp_before_backward(ddp, samples):
    ddp.samples = samples


def ddp_after_backward(ddp):
    ddp.finish()


def get_sharded_optimizer(params, optimizer_class, **options):
    return sharded.ShardedOptimizer(params, optimizer_class, **options)


def hierarchical_all_reduce(tensor, ranks_per_instance, chunk_bytes):
    hierarchical.all_reduce(tensor, ranks_per_instance, chunk_bytes)
