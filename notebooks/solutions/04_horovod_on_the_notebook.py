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
# # 04 · Horovod on the notebook: exercises

# %%
import workshop

# %% [markdown]
# ## Exercise 04.1 · Convert a script (20 minutes, medium)
#
# This is the training of `scripts/train/train_tf.py`, for one process:
#
#     def train(images, labels, loss_of, pin, save, steps, global_batch_size, learning_rate):
#         model = build_model(images.shape[1:], hidden_units=64)
#         optimizer = tf.keras.optimizers.SGD(learning_rate, momentum=0.9)
#         optimizer.build(model.trainable_variables)
#         for step in range(steps):
#             rows = slice(step * global_batch_size, (step + 1) * global_batch_size)
#             batch_images, batch_labels = images[rows], labels[rows]
#             with tf.GradientTape() as tape:
#                 loss = loss_of(model, batch_images, batch_labels)
#             gradients = tape.gradient(loss, model.trainable_variables)
#             optimizer.apply_gradients(zip(gradients, model.trainable_variables))
#         save(model)
#         return model
#
# Six TODOs turn it into a Horovod script. All ranks get the same images; `build_model` gives each
# rank random weights *of its own*. The ranks divide each global batch (strong scaling), so the
# learning rate stays. `pin(number)` shows this process the GPU with that number; `save(model)`
# writes the model.
#
# The check starts your function with `mpirun` on two ranks and looks at the evidence: the weights
# at the first step and at the end, the images that each rank saw, who saved, and the weights that
# one process gets. It takes about ten seconds.
#
# <details><summary>Hint</summary>
#
# 1: one call. 2: the number of this process on *its* host. 3: the weights and the optimizer's
# variables exist already (`optimizer.build`), so this is the moment: `optimizer.variables()` is the
# list. 4: every size-th image, beginning with the rank's. 5: one line, as in the lesson. 6: an
# `if`.
#
# </details>


# %% tags=["answer"]
def train(images, labels, loss_of, pin, save, steps, global_batch_size, learning_rate):
    """Train on several ranks what train_tf.py trains in one process; return the model."""
    import horovod.tensorflow as hvd
    import tensorflow as tf
    from train_tf import build_model

    # TODO 1: start Horovod.
    # BEGIN SOLUTION
    hvd.init()
    # END SOLUTION
    # TODO 2: pin the GPU.
    # BEGIN SOLUTION
    pin(hvd.local_rank())
    # END SOLUTION
    model = build_model(images.shape[1:], hidden_units=64)
    optimizer = tf.keras.optimizers.SGD(learning_rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    # TODO 3: broadcast rank 0's variables, the model's and the optimizer's.
    # BEGIN SOLUTION
    hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)
    # END SOLUTION
    for step in range(steps):
        rows = slice(step * global_batch_size, (step + 1) * global_batch_size)
        batch_images, batch_labels = images[rows], labels[rows]
        # TODO 4: shard the batch: take this rank's part of its images and labels.
        # BEGIN SOLUTION
        part = slice(hvd.rank(), None, hvd.size())
        batch_images, batch_labels = batch_images[part], batch_labels[part]
        # END SOLUTION
        with tf.GradientTape() as tape:
            loss = loss_of(model, batch_images, batch_labels)
        # TODO 5: average the gradients.
        # BEGIN SOLUTION
        tape = hvd.DistributedGradientTape(tape)
        # END SOLUTION
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    # TODO 6: save(model), on one rank.
    # BEGIN SOLUTION
    if hvd.rank() == 0:
        save(model)
    # END SOLUTION
    return model


# %% tags=["check"]
workshop.check("04.1", train)

# %% [markdown]
# ## Exercise 04.2 · Warm up (5 minutes, easy)
#
# `single` is the learning rate that suits one rank. `size` ranks, each with a batch as large as
# before, need `single * size`, but not at once. Return the learning rate of a step, counted from
# 0. It is `single` at step 0, grows by the same amount in every step, is `single * size` at step
# `warmup_steps`, and stays there. `warmup_steps` may be 0: then it is the full rate at once.
#
# <details><summary>Hint</summary>
#
# Which share of the warm-up is over at step 0, at half the steps, and long after? A share is never
# more than 1. Begin with the case in which you would divide by zero.
#
# </details>


# %% tags=["answer"]
def learning_rate(step, single, size, warmup_steps):
    """The learning rate of this step."""
    # BEGIN SOLUTION
    share = min(1.0, step / warmup_steps) if warmup_steps else 1.0
    return single + (single * size - single) * share
    # END SOLUTION


# %% tags=["check"]
workshop.check("04.2", learning_rate)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 04.3 · Which step is missing? (10 minutes, medium)
#
# You are shown the evidence of a run: one dictionary for each rank, with hashes under the
# keys `weights_after_first_step`, `weights_at_end` and `images_seen`. The script does every step of
# the lesson, or lacks exactly one of these three. Return which: `"broadcast"`, `"tape"`,
# `"shard"`, or `None` if nothing is missing.
#
# As in the lesson, each rank starts with weights of its own, and the broadcast, where there is one,
# comes just after the first step.
#
# <details><summary>Hint</summary>
#
# For each of the three keys ask: is it the same on all ranks, or not? Make a table with a row for
# each step that may be missing. Two ranks of three may agree, so look at all.
#
# </details>


# %% tags=["answer"]
def missing_step(ranks):
    """The step that this run lacks. ranks: a dictionary of hashes for each rank."""

    # BEGIN SOLUTION
    def kinds(key):
        return len({rank[key] for rank in ranks})

    if kinds("weights_after_first_step") > 1:
        return "broadcast"
    if kinds("weights_at_end") > 1:
        return "tape"
    if kinds("images_seen") < len(ranks):
        return "shard"
    return None
    # END SOLUTION


# %% tags=["check"]
workshop.check("04.3", missing_step)
