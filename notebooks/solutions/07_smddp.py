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
# # 07 · Exercises: SMDDP
#
# Six exercises, from easy to hard. The last one runs on four real ranks of this machine.

# %%
import itertools

import torch
import torch.distributed as dist

import workshop
from workshop.measure.alpha_beta import Link

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 07.1 · SMDDP, NCCL or neither? (6 minutes, easy)
#
# A colleague asks which backend a job should use. `job` is a dictionary:
#
# - `instance_type`, such as `"ml.p4d.24xlarge"`; `instances`; `gpus`: on each instance;
# - `framework`: `"pytorch"` or `"tensorflow"`; `version`, such as `(2, 5, 1)`;
# - `own_groups`: whether the script calls `torch.distributed.new_group()`.
#
# Return `"smddp"` where it is worth a measurement because it can run; `"nccl"` for all other jobs
# with GPUs; `"gloo"` without them; and `"none"` if there is only one rank. A job has a rank for
# each GPU, and one for each instance without GPUs.
#
# <details><summary>Hint</summary>
# "SMDDP in one page" has four conditions: two types of instance, one framework, its last version,
# no groups. Versions compare as tuples: `(2, 10, 0) > (2, 5, 1)`.
# </details>


# %% tags=["answer"]
def backend(job):
    """The backend for a job: "smddp", "nccl", "gloo" or "none"."""
    # BEGIN SOLUTION
    if job["instances"] * max(1, job["gpus"]) == 1:
        return "none"
    if job["gpus"] == 0:
        return "gloo"
    made_for = job["instance_type"] in ("ml.p4d.24xlarge", "ml.p4de.24xlarge")
    runs = job["framework"] == "pytorch" and job["version"] <= (2, 5, 1)
    return "smddp" if made_for and runs and not job["own_groups"] else "nccl"
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.1", backend)

# %% [markdown]
# ## Exercise 07.2 · What PowerSGD sends (8 minutes, medium)
#
# PowerSGD takes each gradient as a matrix: the first dimension are the rows, all others together
# the columns. A convolution's weight of shape (64, 32, 3, 3) has 64 rows and 288 columns. In place
# of the matrix it sends two thin ones, rows x r and columns x r; r is `rank` here, a small number
# (not a process). PyTorch does so only if twice the numbers of the thin ones are fewer than those
# of the matrix. Everything else, and each vector, travels as it is. A number has 4 bytes.
#
# How many bytes does a rank put into one step's all-reduces?
#
# <details><summary>Hint</summary>
# With `r` the width: compress if `2 * (rows + columns) * r < rows * columns`.
# `math.prod(shape[1:])` are the columns.
# </details>


# %% tags=["answer"]
def powersgd_bytes(shapes, rank):
    """Bytes that are averaged for gradients of these shapes (tuples)."""
    # BEGIN SOLUTION
    numbers = 0
    for rows, *others in shapes:
        columns = 1
        for size in others:
            columns *= size
        thin = (rows + columns) * rank
        compressed = bool(others) and 2 * thin < rows * columns
        numbers += thin if compressed else rows * columns
    return 4 * numbers
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.2", powersgd_bytes)

# %% [markdown]
# Try it: the lesson's model has the shapes `(16, 1, 3, 3)`, `(16,)`, `(32, 16, 3, 3)`, `(32,)`,
# `(512, 512)`, `(512,)`, `(10, 512)`, `(10,)`. What is the ratio by bytes for a width of 2? The
# step became faster by less, because it also computes.
#
# ## Exercise 07.3 · Read a trace (8 minutes, medium)
#
# A profiler gives you one rank's step as spans: (kind, start, end), in milliseconds, in any order.
# kind is `"compute"` or `"all-reduce"`. Spans of one kind may overlap: buckets share the link.
#
# Return the **exposed communication**: for how many milliseconds something is being sent while
# nothing is computed.
#
# <details><summary>Hint</summary>
# Cut the time at every start and end. Between two neighbouring cuts nothing changes: look which
# kinds cover that piece, and add its length if it is only the all-reduce.
# </details>


# %% tags=["answer"]
def exposed_ms(spans):
    """Milliseconds in which an all-reduce runs and no computing does."""
    # BEGIN SOLUTION
    cuts = sorted({time for _, start, end in spans for time in (start, end)})
    exposed = 0.0
    for left, right in itertools.pairwise(cuts):
        active = {kind for kind, start, end in spans if start <= left and right <= end}
        if active == {"all-reduce"}:
            exposed += right - left
    return exposed
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.3", exposed_ms)

# %% [markdown]
# ## Exercise 07.4 · Which buckets? (10 minutes, medium)
#
# `layers` has a pair for each layer, in the order of `backward()`: (milliseconds that it computes,
# bytes of its gradient, which is ready when it is done). A bucket closes as soon as it holds
# `limit` bytes or more, and at the end of `backward()`. Its all-reduce takes `alpha + beta * bytes`
# milliseconds. It begins when the bucket is closed and the one before it has been sent.
#
# Return after how many milliseconds the last all-reduce ends.
#
# <details><summary>Hint</summary>
# Go through the layers with two clocks: `computed` is when `backward()` has come so far, `sent` is
# when the link is free again. A bucket begins at the later of the two.
# </details>


# %% tags=["answer"]
def step_ms(layers, limit, alpha, beta):
    """When the last bucket has been sent, in ms since backward() began."""
    # BEGIN SOLUTION
    computed = sent = 0.0
    bucket = 0
    for number, (ms, n_bytes) in enumerate(layers):
        computed += ms
        bucket += n_bytes
        if bucket >= limit or number == len(layers) - 1:
            sent = max(sent, computed) + alpha + beta * bucket
            bucket = 0
    return sent
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.4", step_ms)

# %% [markdown]
# Now decide: 40 layers of 1 MB, 3 ms each, on a link with β = 8 ms per MB and α = 2 ms; then with α
# = 20 ms. Which limit is best, 1, 2, 5, 10 or 40 MB? Why neither the smallest nor the largest?
#
# ## Exercise 07.5 · Test the model (9 minutes, medium)
#
# `messages` are timed messages, bytes → seconds. `Link.fit(messages)` gives the line; its
# `.seconds(n_bytes)` is what a message takes. `rings` are ring all-reduces of other sizes, which
# somebody measured: (ranks, bytes of the tensor) → seconds.
#
# Judge the model by what it was not fitted on. Return the case of `rings` that it predicts worst,
# and its error with the sign: predicted / measured - 1.
#
# <details><summary>Hint</summary>
# A ring has 2 (N - 1) steps, and a message of it has a part of the tensor. "Worst" is the largest
# absolute error.
# </details>


# %% tags=["answer"]
def worst(messages, rings):
    """(the case that is predicted worst, its error with the sign)."""
    # BEGIN SOLUTION
    link = Link.fit(messages)
    errors = {
        (ranks, n_bytes): 2 * (ranks - 1) * link.seconds(n_bytes / ranks) / measured - 1
        for (ranks, n_bytes), measured in rings.items()
    }
    case = max(errors, key=lambda case: abs(errors[case]))
    return case, errors[case]
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.5", worst)

# %% [markdown]
# ## Exercise 07.6 · Two tiers in three calls (13 minutes, hard)
#
# `tensor` is a vector whose length is a multiple of the number of ranks on an instance.
# `intra_node` is the group of all ranks on this rank's instance. `inter_node` is the group of the
# ranks with the same local_rank, one per instance. Return the sum over **all** ranks, on every
# rank, and let the ranks of an instance together send no more over the network than necessary.
#
# Use `dist.reduce_scatter(part, parts, group=…)`, `dist.all_reduce(part, group=…)` and
# `dist.all_gather(parts, part, group=…)`. `part` is one part, `parts` a list with one part for each
# rank of the group. `dist.get_world_size(group)` returns the size of a group.
#
# <details><summary>Hint</summary>
# Cut with list(tensor.chunk(n)). The intra-node reduce-scatter leaves you with one part of your
# instance's sum. All-reduce only that part inter-node. Then gather the parts intra-node and
# join them with torch.cat.
# </details>


# %% tags=["answer"]
def hierarchical(tensor, intra_node, inter_node):
    """The sum of `tensor` over all ranks, element by element."""
    # BEGIN SOLUTION
    parts = list(tensor.chunk(dist.get_world_size(intra_node)))
    part = torch.empty_like(parts[0])
    dist.reduce_scatter(part, parts, group=intra_node)
    dist.all_reduce(part, group=inter_node)
    dist.all_gather(parts, part, group=intra_node)
    return torch.cat(parts)
    # END SOLUTION


# %% tags=["check"]
workshop.check("07.6", hierarchical)
