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
# # 08 · Exercises: serving, and resuming after an interruption
#
# Three exercises, easy, medium and hard. None of them needs a job or an endpoint.

# %%
import json
import os
from pathlib import Path

import numpy as np

import workshop

# %% [markdown]
# ## Exercise 08.1 · A file for batch transform (6 minutes, easy)
#
# Batch transform reads a file line by line, and each line is a request of its own. Write the
# function that makes such a file from images, an array (n, 8, 8, 1) of whole numbers: a JSON object
# in each line, `{"images": …}` with one image as nested lists, and a line break at the end of each.
#
# <details><summary>Hint</summary>
# json knows Python's lists and numbers, and not numpy's: array.tolist() gives the former.
# json.dumps without more puts no line break into what it writes.
# </details>


# %% tags=["answer"]
def json_lines(images):
    """A text with a JSON object for each image, one in each line."""
    # BEGIN SOLUTION
    return "".join(json.dumps({"images": image.tolist()}) + "\n" for image in images)
    # END SOLUTION


# %% tags=["check"]
workshop.check("08.1", json_lines)

# %% [markdown]
# ## Exercise 08.2 · A digit in place of ten numbers (8 minutes, medium)
#
# A server answers with the probabilities of ten classes, in JSON:
# `{"predictions": [[0.1, …], …]}`. Those who ask want a digit, and to know when the model is not
# sure. Write the function that an `inference.py` would call on the answer. It takes that text and
# returns a text: `{"digits": [3, null, …]}` with the likeliest digit of each image, or `null` where
# its probability is below `sure`.
#
# <details><summary>Hint</summary>
# json.loads, np.argmax over the last axis, and int(): json.dumps refuses numpy's own numbers.
# None becomes null.
# </details>


# %% tags=["answer"]
def digits_of(body, sure=0.5):
    """The answer of the server, made short: the JSON text {"digits": [...]}."""
    # BEGIN SOLUTION
    rows = np.array(json.loads(body)["predictions"])
    best = rows.argmax(axis=1)
    digits = [int(d) if row[d] >= sure else None for d, row in zip(best, rows, strict=True)]
    return json.dumps({"digits": digits})
    # END SOLUTION


# %% tags=["check"]
workshop.check("08.2", digits_of)

# %% [markdown]
# ## Exercise 08.3 · A checkpoint that is never half (13 minutes, hard)
#
# A spot instance can be taken away while a checkpoint is being written. Then the file must be the
# old one, whole, or the new one, whole. Write `save(path, chunks)`: `chunks` yields the bytes of
# the new checkpoint, piece by piece, and may raise an error at any piece. Write each piece as it
# comes. If there is an error, it must come out of `save`, the old file must be as it was, and
# nothing else may lie in its folder.
#
# <details><summary>Hint</summary>
# Write to another name in the same folder. When everything is written, and on the disk (flush, then
# os.fsync), os.replace gives it the name, in one step. On an error remove what you wrote, and raise
# the error again. A rename from another folder is not one step: that may be another disk.
# </details>


# %% tags=["answer"]
def save(path, chunks):
    """Replace the file `path` by the bytes of `chunks`, wholly or not at all."""
    # BEGIN SOLUTION
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    # END SOLUTION


# %% tags=["check"]
workshop.check("08.3", save)
