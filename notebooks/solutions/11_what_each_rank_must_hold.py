# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 11 · Exercises: what each rank must hold
#
# Count bytes, build a layer that no rank holds, and choose.

# %%
import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 11.1 · Mixed precision (10 minutes, easy)
#
# Mixed precision computes with weights of 2 bytes, and its gradients have 2 bytes, too. AdamW keeps
# weights of 4 bytes of its own, and its two numbers of 4 bytes each: all that is optimizer state.
#
# How many GB (10⁹ bytes) does a rank hold after a step, before `zero_grad()`, for a model of
# `billions` of parameters? `way` is `"ddp"`, `"zero1"`, `"zero2"`, `"zero3"` or `"hsdp"`. Each of
# the `instances` has 8 ranks. Count the gradients once, with DDP as views of its buckets, and with
# ZeRO-1 without the averaged part that the lesson's own holds apart. ZeRO-2's weights are whole, as
# in the paper.
#
# <details><summary>Hint</summary>
#
# What is not divided is on every rank: 16 bytes for each parameter, less what is divided, plus the
# rank's part of that. HSDP divides among the ranks of one instance.
#
# </details>


# %% tags=["answer"]
def held_gb(billions, way, instances):
    """GB that a rank holds: weights, gradients, optimizer state."""
    # BEGIN SOLUTION
    ranks = 8 if way == "hsdp" else 8 * instances
    divided = {"ddp": 0, "zero1": 12, "zero2": 14, "zero3": 16, "hsdp": 16}[way]  # bytes
    return billions * (16 - divided + divided / ranks)
    # END SOLUTION


# %% tags=["check"]
workshop.check("11.1", held_gb)

# %% [markdown]
# ## Exercise 11.2 · A layer that no rank holds (22 minutes, hard)
#
# ZeRO-3 of one linear layer. Each rank holds some rows of its weight, `shard`: rank 0 the first
# ones, rank 1 the next ones, and so on. Every rank has a batch `x` of its own. Return
# `x @ weight.T`, by a `torch.autograd.Function`
# ([how to write one](https://docs.pytorch.org/docs/stable/notes/extending.html)), such that after
# `.backward()`
#
# - `x.grad` is what it would be with an ordinary layer;
# - `shard.grad` is this rank's part of the gradient, **averaged over all ranks**;
# - between forward and backward no rank keeps the whole weight: gather it twice.
#
# <details><summary>Hint</summary>
#
# What autograd keeps is what you give to `ctx.save_for_backward`. Write `class Layer` with
# `forward(ctx, x, shard)` and `backward(ctx, grad)`, which returns a gradient for each of the two
# inputs, and `return Layer.apply(x, shard)`. For an ordinary layer the
# gradients are `grad @ weight` and `grad.T @ x`. You need `dist.all_gather_into_tensor(whole,
# part)` and `dist.reduce_scatter_tensor(part, whole)`, which adds.
#
# </details>


# %% tags=["answer"]
def divided_linear(x, shard):
    """x @ weight.T; x: (batch, inputs), shard: (outputs / world_size, inputs)."""
    import torch
    import torch.distributed as dist

    n = dist.get_world_size()
    # BEGIN SOLUTION

    def gathered(shard):
        weight = shard.new_empty(n * shard.shape[0], shard.shape[1])
        dist.all_gather_into_tensor(weight, shard)
        return weight

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, shard):
            ctx.save_for_backward(x, shard)
            return x @ gathered(shard).T

        @staticmethod
        def backward(ctx, grad):
            x, shard = ctx.saved_tensors
            part = torch.empty_like(shard)
            dist.reduce_scatter_tensor(part, grad.T @ x)
            return grad @ gathered(shard), part / n

    return Layer.apply(x, shard)
    # END SOLUTION


# %% tags=["check"]
workshop.check("11.2", divided_linear)

# %% [markdown]
# ## Exercise 11.3 · Which way? (13 minutes, medium)
#
# Mixed precision as in 11.1, GPUs of 80 GB, 8 on each instance. Activations take 10 GB of each GPU.
# The links between instances are the other limit: while a step computes, `budget` GB can cross the
# link of an instance. Take the first way that keeps to both limits, in this order: `"ddp"`,
# `"zero1"`, `"zero2"`, `"hsdp"`, `"zero3"`. If none does, return `"none"`. On one instance nothing
# crosses a link, and HSDP is ZeRO-3: call it `"zero3"`. Count what is held as in 11.1.
#
# Count what is sent as in the lesson, over NCCL: rings of all ranks, HSDP's all-reduce of the
# shards between the instances. A model, what travels in one pass, is the weights or the gradients:
# 2 bytes for each parameter. Suppose that ZeRO-1 overlaps, too.
#
# <details><summary>Hint</summary>
#
# Models over the link, for N ranks on I instances: DDP, ZeRO-1 and ZeRO-2 2 (N - 1) / N, ZeRO-3
# 3 (N - 1) / N, HSDP 2 (I - 1) / I. So with I = 1 HSDP's are 0; set the others to 0 as well.
#
# </details>


# %% tags=["answer"]
def choose(billions, instances, budget):
    """ "ddp", "zero1", "zero2", "hsdp", "zero3" or "none"."""
    # BEGIN SOLUTION
    ranks = 8 * instances
    around = (ranks - 1) / ranks if instances > 1 else 0
    passes = {"ddp": 2 * around, "zero1": 2 * around, "zero2": 2 * around}
    if instances > 1:
        passes["hsdp"] = 2 * (instances - 1) / instances
    passes["zero3"] = 3 * around
    for way, models in passes.items():
        if held_gb(billions, way, instances) + 10 <= 80 and models * 2 * billions <= budget:
            return way
    return "none"
    # END SOLUTION


# %% tags=["check"]
workshop.check("11.3", choose)
