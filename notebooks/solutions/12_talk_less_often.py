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
# # 12 · Exercises: talk less often
#
# Two ways to send less, written by you: one message for several batches, and the memory of what was
# not sent. And between them the question that comes first: will it pay?

# %%
import workshop

# %% [markdown]
# ## Exercise 12.1 · One message for several batches (10 minutes, medium)
#
# `parallel` is a model under DDP, and `batches` is a list of `(inputs, targets)`, all equally long.
# Take **one** step of the optimizer, with the mean gradient of all batches on all ranks, and let
# DDP average only **once**. The weights must be those that one process gets from one large batch.
# The loss is `torch.nn.functional.mse_loss(parallel(inputs), targets)`. The check counts messages
# on real ranks.
#
# <details><summary>Hint</summary>
#
# `backward()` adds to the gradients that are there. Inside `with parallel.no_sync():` it adds, and
# sends nothing; the first `backward()` outside sends the sum. And a sum of four means is not a
# mean.
#
# </details>


# %% tags=["answer"]
def accumulate(parallel, optimizer, batches):
    """One step with the mean gradient of all batches of all ranks."""
    from torch.nn.functional import mse_loss

    # BEGIN SOLUTION
    optimizer.zero_grad()
    *first, last = batches
    with parallel.no_sync():
        for inputs, targets in first:
            (mse_loss(parallel(inputs), targets) / len(batches)).backward()
    inputs, targets = last
    (mse_loss(parallel(inputs), targets) / len(batches)).backward()
    optimizer.step()
    # END SOLUTION


# %% tags=["check"]
workshop.check("12.1", accumulate)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 12.2 · Will it pay? (12 minutes, medium)
#
# You have timed a step on a fast link, where bytes hardly count, and want to know what happens on a
# slower one of `mbit` Mbit/s, before you start a job there. `ways` has for each way its bytes per
# step, its seconds of a step on the fast link, and its steps to the goal:
# `{"DDP": (472_000, 0.0056, 105), "top-k": (11_000, 0.0065, 150), "alone": (0, 0.0032, 160)}`.
# Nothing overlaps. Predict each step on the slower link. Return DDP's r there, and the name of the
# way that gets to the goal first.
#
# <details><summary>Hint</summary>
#
# A byte has 8 bits, a megabit is a million. r is what DDP's step takes longer than *alone*'s,
# divided by *alone*'s. Each way has a step of its own: compressing takes time, too.
#
# </details>


# %% tags=["answer"]
def plan(mbit, ways):
    """(r of DDP, the fastest way to the goal) on a link of so many Mbit/s."""
    # BEGIN SOLUTION
    step = {way: fast + 8 * sent / (mbit * 1e6) for way, (sent, fast, _) in ways.items()}
    seconds = {way: steps * step[way] for way, (_, _, steps) in ways.items()}
    r = (step["DDP"] - step["alone"]) / step["alone"]
    return r, min(seconds, key=seconds.get)
    # END SOLUTION


# %% tags=["check"]
workshop.check("12.2", plan)

# %% [markdown]
# ## Exercise 12.3 · What is left out is not lost (9 minutes, medium)
#
# Of each gradient, a vector, only the `count` numbers that are largest in size travel. Return their
# places and their values. `left_out`, a vector of the same length, at first zeros, remembers what
# has not been sent: it is added before you choose, and you update it **in place**. After any number
# of steps, what was sent and what is left out must together be the sum of all gradients.
#
# <details><summary>Hint</summary>
#
# -5 is larger in size than 3. `torch.topk(...).indices` are places; `left_out[places] = 0` is in
# place.
#
# </details>


# %% tags=["answer"]
def compress(gradient, left_out, count):
    """(places, values) of what is sent; left_out is updated in place."""
    import torch

    # BEGIN SOLUTION
    left_out += gradient
    places = torch.topk(left_out.abs(), count).indices
    values = left_out[places].clone()
    left_out[places] = 0
    return places, values
    # END SOLUTION


# %% tags=["check"]
workshop.check("12.3", compress)
