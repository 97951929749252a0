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
# # 03 · Parameter servers: exercises

# %%
import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 03.1 · Sync, async or a ring? (10 minutes, medium)
#
# `compute` has the seconds that each worker needs for a gradient. The weights, or a gradient, take
# `transfer` seconds over a link; each worker and the server have a link of their own, whose two
# directions work at the same time. Latency doesn't count. How many gradients per second are
# computed by
#
# - `"sync"`: the server sends the weights to all, one after the other. When the slowest worker is
#   done, the gradients come in, one after the other;
# - `"async"`: each worker pulls, computes and pushes without waiting for others. But the server's
#   link carries one message at a time in each direction;
# - `"ring"`: no server; all compute, then a ring all-reduce of the gradients?
#
# Return a dictionary. Which of the three is best with a straggler, and which on a slow link?
#
# <details><summary>Hint</summary>
#
# Sync and ring: workers divided by the seconds of a step. Async: what the workers could deliver
# together if the server's link were always free, or what that link can carry, whichever is less.
#
# </details>


# %% tags=["answer"]
def gradients_per_second(compute, transfer):
    """{"sync": ..., "async": ..., "ring": ...}: gradients per second."""
    # BEGIN SOLUTION
    n, slowest = len(compute), max(compute)
    return {
        "sync": n / (slowest + 2 * n * transfer),
        "async": min(sum(1 / (seconds + 2 * transfer) for seconds in compute), 1 / transfer),
        "ring": n / (slowest + 2 * (n - 1) / n * transfer),
    }
    # END SOLUTION


# %% tags=["check"]
workshop.check("03.1", gradients_per_second)

# %% [markdown]
# ## Exercise 03.2 · Bytes and connections (5 minutes, medium)
#
# A model has `parameters` weights, float32. In every step each of `workers` workers pulls all
# weights once and pushes one gradient. The weights are spread over `servers` parameter servers as
# evenly as whole numbers allow. Return two numbers:
#
# 1. the bytes that pass through the server with the most weights, in and out, in one step;
# 2. the connections between workers and servers.
#
# <details><summary>Hint</summary>
#
# 10 weights on 3 servers are 4, 3 and 3: the fullest has 10 / 3, rounded up. Each of its weights
# goes out once and comes in once (as a gradient) for each worker, 4 bytes each time.
#
# </details>


# %% tags=["answer"]
def server_load(parameters, workers, servers):
    """(bytes in and out of the fullest server in one step, connections)."""
    # BEGIN SOLUTION
    fullest = -(-parameters // servers)
    return 2 * 4 * fullest * workers, workers * servers
    # END SOLUTION


# %% tags=["check"]
workshop.check("03.2", server_load)

# %% [markdown]
# ## Exercise 03.3 · Bounded staleness (15 minutes, hard)
#
# Write the server's loop for SSP. Apply each gradient as it comes. Then let a worker go on only if
# it has pushed at most `s` gradients more than the slowest worker; otherwise it waits for its
# answer until that is so. `server` is the lesson's `Server`:
#
# - `server.send_weights(worker)` answers a worker, which then computes its next gradient. Once
#   enough gradients were asked for, the same call tells it to stop;
# - `server.receive_gradient()` returns (worker, gradient) of the first that arrives;
# - `server.apply(gradient)` updates the weights.
#
# In all, `steps * len(workers)` gradients arrive. The check runs it with real workers, one of them
# slow.
#
# <details><summary>Hint</summary>
#
# Begin with the lesson's `serve_async`. Keep the number of gradients of each worker, and the set of
# those who wait. After *every* gradient look at all who wait: a push of the slowest may release
# others.
#
# </details>


# %% tags=["answer"]
def serve_bounded(server, workers, steps, s):
    """Serve until all gradients have come; no worker is more than s ahead of the slowest."""
    # BEGIN SOLUTION
    pushed, waiting = dict.fromkeys(workers, 0), set()
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps * len(workers)):
        worker, gradient = server.receive_gradient()
        server.apply(gradient)
        pushed[worker] += 1
        waiting.add(worker)
        for waits in sorted(waiting):
            if pushed[waits] - min(pushed.values()) <= s:
                server.send_weights(waits)
                waiting.remove(waits)
    for worker in waiting:
        server.send_weights(worker)
    # END SOLUTION


# %% tags=["check"]
workshop.check("03.3", serve_bounded)
