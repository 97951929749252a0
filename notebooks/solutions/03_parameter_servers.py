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
import copy

import workshop

# %% [markdown]
# ## Exercise 03.1 · Speak TensorFlow 2 (5 minutes, easy)
#
# SageMaker writes TensorFlow 1's name `master`. TensorFlow 2 calls the same role `chief`, and
# refuses a cluster with a role that it does not know. Write the function that turns the one into
# the other. It returns a new dictionary and leaves the one that it was given as it is.
#
# `tf_config` looks like this, on the first of two instances:
#
#     {
#         "cluster": {
#             "master": ["algo-1:2222"],
#             "ps": ["algo-1:2223", "algo-2:2223"],
#             "worker": ["algo-2:2222"],
#         },
#         "environment": "cloud",
#         "task": {"type": "master", "index": 0},
#     }
#
# <details><summary>Hint</summary>
#
# The name is in two places: as a key of `cluster`, and, on one host only, as the type of the
# `task`. `copy.deepcopy` makes a copy that shares nothing with the original.
#
# </details>


# %% tags=["answer"]
def for_tensorflow_2(tf_config):
    """The same cluster and task, with `chief` in place of `master`."""
    # BEGIN SOLUTION
    renamed = copy.deepcopy(tf_config)
    cluster, task = renamed["cluster"], renamed["task"]
    if "master" in cluster:
        cluster["chief"] = cluster.pop("master")
    if task["type"] == "master":
        task["type"] = "chief"
    return renamed
    # END SOLUTION


# %% tags=["check"]
workshop.check("03.1", for_tensorflow_2)

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
# ## Exercise 03.3 · An asynchronous server (15 minutes, hard)
#
# Write the server's loop yourself. `messages` is what reached the server, in order:
#
# - `("pull", worker)`: the worker takes the weights as they are now;
# - `("push", worker, gradient)`: its gradient, for the weights of its last pull.
#
# Apply every gradient as it comes: `weights = weights - learning_rate * gradient`. Return the last
# weights, and a list with the staleness of each gradient: how many updates were applied between
# that worker's pull and its push. To keep it small the weights are one number.
#
# <details><summary>Hint</summary>
#
# Count the updates. At a pull, note the count for that worker. At a push, the staleness is the
# count now less the count that you noted; only then comes the update.
#
# </details>


# %% tags=["answer"]
def serve(weights, messages, learning_rate):
    """(the last weights, the staleness of each gradient in the order of the pushes)."""
    # BEGIN SOLUTION
    updates, updates_at_pull, staleness = 0, {}, []
    for kind, worker, *gradient in messages:
        if kind == "pull":
            updates_at_pull[worker] = updates
        else:
            staleness.append(updates - updates_at_pull[worker])
            weights = weights - learning_rate * gradient[0]
            updates += 1
    return weights, staleness
    # END SOLUTION


# %% tags=["check"]
workshop.check("03.3", serve)
