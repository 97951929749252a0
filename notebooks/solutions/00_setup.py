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
# # 00 · Exercises: set up
#
# Two things that every script of yours needs on SageMaker: a metric that is read from its log,
# and arguments that fit what an instance gives it.

# %%
import argparse

import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 00.1 · Read a metric from the log (5 minutes, easy)
#
# SageMaker finds metrics with **regular expressions**: each has one group in parentheses, and what
# the group matches must be a number. It looks at every line of the log.
#
# The scripts of this course print lines like this one:
#
# `{"event": "epoch", "epoch": 3, "train_loss": 0.2153, "test_accuracy": 0.9306}`
#
# Write the expression for `train_loss`. Small losses are printed as `4.1e-05`. Another script
# may print `"best_train_loss"` in the same line: that is not the metric you want.
#
# <details><summary>Hint</summary>
#
# Begin with the quotation mark in front of the name, and end with the number. In square brackets
# you list the characters that a number can have: digits, and which others?
#
# </details>


# %% tags=["answer"]
def train_loss_regex():
    """Return the regular expression, a string with one group."""
    # BEGIN SOLUTION
    return r'"train_loss": ([0-9.eE+-]+)'
    # END SOLUTION


# %% tags=["check"]
workshop.check("00.1", train_loss_regex)

# %% [markdown]
# ## Exercise 00.2 · Prepare a script for an instance (8 minutes, medium)
#
# A script that you wrote for your laptop reads `data/training` and writes to `model`. On an
# instance these folders have other places, and the script is started with arguments.
#
# Write `settings`. It gets the script's arguments and its environment, and returns an
# `argparse.Namespace` with three values:
#
# - `training`: the folder of the channel `training`. SageMaker puts it into
#   `SM_CHANNEL_TRAINING`; without that variable it is `data/training`.
# - `save_to`: where the model must lie at the end: `SM_MODEL_DIR`, or else `model`.
# - `epochs`: the hyperparameter `epochs`, a whole number, 20 if it is not given. SageMaker
#   starts the script with `--epochs 5`.
#
# The SDK's TensorFlow estimator also sends `--model_dir` with an address in S3. Accept it, and do
# not use it: SageMaker uploads what lies in `SM_MODEL_DIR` and nothing else. Any other argument
# must end the script, a mistyped `--epoch` too. (By default argparse takes it for `--epochs`.)
#
# <details><summary>Hint</summary>
#
# `parser.add_argument("--epochs", type=..., default=...)`; the default of `--training` is
# `environment.get(...)`. Which of `parse_args` and `parse_known_args` complains?
#
# </details>


# %% tags=["answer"]
def settings(arguments, environment):
    """Arguments: a list of strings. Environment: a dict of strings."""
    # BEGIN SOLUTION
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--model_dir")
    training = environment.get("SM_CHANNEL_TRAINING", "data/training")
    parser.add_argument("--training", default=training)
    parser.add_argument("--save-to", default=environment.get("SM_MODEL_DIR", "model"))
    return parser.parse_args(arguments)
    # END SOLUTION


# %% tags=["check"]
workshop.check("00.2", settings)
