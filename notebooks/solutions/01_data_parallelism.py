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
# # 01 · Exercises: data parallelism
#
# Five functions, from a line to a whole script. The mistakes that people make in them raise no
# error, so the checks run what you write on real ranks and look at what it did.

# %%
import pandas as pd

import workshop

# %% [markdown]
# ## Exercise 01.1 · Equal shards (5 minutes, easy)
#
# 1,437 images can't be cut into four equal parts. But the parts must be equal: unequal ones give
# a wrong gradient, and a rank with one batch more than the others waits forever in its last
# all-reduce.
#
# Write `shard`. It returns the numbers of the images that a rank takes. All ranks get the same
# number of images, no image goes to two ranks, and as few as possible are left out.
#
# <details><summary>Hint</summary>
#
# How many can each rank have at most? `//` divides and drops the remainder. Leave out the
# surplus *before* you deal the images out.
#
# </details>


# %% tags=["answer"]
def shard(images, rank, world_size):
    """Images: how many there are. Return a list of numbers from 0 to images - 1."""
    # BEGIN SOLUTION
    each = images // world_size
    return list(range(rank, each * world_size, world_size))
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.1", shard)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 01.2 · Unequal shards, the right gradient (8 minutes, medium)
#
# Sometimes no image may be left out, so the shards are unequal. Then the mean of the ranks'
# gradients is wrong. But the ranks can put something else into the all-reduce.
#
# Each rank knows its own gradient (the *mean* over its own images), how many images it has, and
# how many all ranks have together. The all-reduce adds up what the ranks put in, and nobody
# divides afterwards. Write `put_in`, so that the sum is the gradient of the whole batch.
#
# <details><summary>Hint</summary>
#
# From a mean over 10 images you get back the sum over these 10 by multiplying. By what must the
# sum over all images be divided?
#
# </details>


# %% tags=["answer"]
def put_in(gradient, own_images, all_images):
    """Gradient: a numpy array, the mean over own_images. Return an array of that shape."""
    # BEGIN SOLUTION
    return gradient * (own_images / all_images)
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.2", put_in)

# %% [markdown]
# ## Exercise 01.3 · One process becomes several (12 minutes, hard)
#
# This trains a model in one process, in place. `loss_of(model, images, labels)` returns the mean
# loss of these images:
#
#     def train_alone(model, loss_of, images, labels, steps):
#         optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
#         for _ in range(steps):
#             optimizer.zero_grad()
#             loss_of(model, images, labels).backward()
#             optimizer.step()
#
# Turn it into a data-parallel training. `train_together` is called on every rank, with the same
# images. Each rank's `model` starts with random weights *of its own*. At the end the weights of
# all ranks must be those that one process gets from rank 0's first weights, and no two ranks may
# have computed with the same image. The number of images can be divided by the number of ranks.
#
# The check runs your answer on two real ranks, then on three. Use `torch.distributed`, or DDP.
#
# <details><summary>Hint</summary>
#
# Three things are missing: equal weights at the start (`dist.broadcast(weight.data, src=0)` for
# each weight), a part of the images for each rank, and the mean of the gradients between
# `backward()` and `step()` (`dist.all_reduce(weight.grad)`, then divide).
#
# </details>


# %% tags=["answer"]
def train_together(model, loss_of, images, labels, steps):
    """Train `model` in place, together with the other ranks. images, labels: all of them."""
    import torch
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    # BEGIN SOLUTION
    for weight in model.parameters():
        dist.broadcast(weight.data, src=0)
    images, labels = images[rank::world_size], labels[rank::world_size]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, images, labels).backward()
        for weight in model.parameters():
            dist.all_reduce(weight.grad)
            weight.grad /= world_size
        optimizer.step()
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.3", train_together)

# %% [markdown]
# ## Exercise 01.4 · Which mistake was made? (12 minutes, hard)
#
# Six trainings, A to F, ran on two ranks. None raised an error. One is right; each of the others
# has one of these mistakes:
#
# | answer | mistake |
# |---|---|
# | `"unequal shards"` | rank 0 takes more images of each batch; plain mean of the gradients |
# | `"sum"` | the gradients are added, and nobody divides |
# | `"no broadcast"` | the ranks never exchanged their first weights |
# | `"no set_epoch"` | each epoch has the same order of images |
# | `"inner model"` | DDP wraps the model, but the loss calls the model inside |
# | `"none"` | |
#
# The cell shows what each rank reports: how many images it took in an epoch, its updates, hashes
# of the order of its images in two epochs, hashes of its weights at the start and at the end, its
# loss, and the length of its first update beside that of one process with the whole batch.
#
# Decide which is which. Then write it down as a rule: `name_mistake` gets a run's evidence, a list
# with a dictionary for each rank (the columns of the table), and returns the answer. The check
# makes the six runs again, on two ranks and on three.
#
# <details><summary>Hint</summary>
#
# Each mistake leaves one trace that no other leaves, if you ask in the right order. Are the weights
# equal at the start? If so, at the end? Are the numbers of images equal? Do the orders of the two
# epochs differ? How long is the first update, compared with one process's? The loss decides
# nothing.
#
# </details>

# %%
with workshop.start_ranks(2) as two:
    evidence = {run: two.run("parallel.mistakes:train", run) for run in "ABCDEF"}
table = pd.concat({run: pd.DataFrame(of_ranks) for run, of_ranks in evidence.items()})
table.rename_axis(["run", "rank"])


# %% tags=["answer"]
def name_mistake(ranks):
    """ranks: the evidence of each rank, a dictionary. Return one of the six answers."""
    # BEGIN SOLUTION
    if len({rank["start"] for rank in ranks}) > 1:
        return "no broadcast"
    if len({rank["end"] for rank in ranks}) > 1:
        return "inner model"
    if len({rank["images"] for rank in ranks}) > 1:
        return "unequal shards"
    if ranks[0]["order_1"] == ranks[0]["order_2"]:
        return "no set_epoch"
    if ranks[0]["first_update"] > 1.5 * ranks[0]["one_process_update"]:
        return "sum"
    return "none"
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.4", name_mistake)

# %% [markdown]
# ## Exercise 01.5 · A real script becomes a DDP script (15 minutes, hard)
#
# Six lines of `scripts/train/train_torch.py` stand between one process and many. Below is its
# `main`; find these six in it:
#
# 1. `rank, world_size = 0, 1`
# 2. `sampler = RandomSampler(dataset, generator=torch.Generator())`
# 3. `optimizer = torch.optim.SGD(...)`: before this line the model exists, and is not wrapped
# 4. `sampler.generator.manual_seed(args.seed + epoch)  # a new order in each epoch`
# 5. `loss = cross_entropy(model(images.to(device)), labels.to(device))`
# 6. `record = {"train_loss": torch.stack(losses).mean().item()}`: of this rank's images alone
#
# Return what stands in their place, by number: a text of one line or of several. Three names are
# already imported: `dist` (torch.distributed), `DistributedDataParallel` and `DistributedSampler`.
# The backend is `"gloo"`. The check puts your lines into a copy of the file, starts it as
#
#     torchrun --standalone --nproc_per_node 2 converted.py --epochs 2 --global-batch-size 64
#
# would, and compares what the two ranks print: hashes of their weights, steps, losses.
#
# <details><summary>Hint</summary>
#
# `train_with_ddp` in the lesson has 1 to 5. In 3, keep the old line too: the rest of `main` still
# needs `model` and `optimizer`. For 6, all-reduce a tensor that holds the mean loss, and divide.
#
# </details>

# %%
workshop.show_function("train/train_torch.py", "main")


# %% tags=["answer"]
def convert():
    """{1: text, 2: text, ...}: what stands in place of the six lines."""
    # BEGIN SOLUTION
    return {
        1: """
            dist.init_process_group("gloo")
            rank, world_size = dist.get_rank(), dist.get_world_size()
        """,
        2: "sampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)",
        3: """
            parallel_model = DistributedDataParallel(model)
            optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
        """,
        4: "sampler.set_epoch(epoch)",
        5: "loss = cross_entropy(parallel_model(images.to(device)), labels.to(device))",
        6: """
            mean_loss = torch.stack(losses).mean()
            dist.all_reduce(mean_loss)
            record = {"train_loss": mean_loss.item() / world_size}
        """,
    }
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.5", convert)
