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
# # 08 · Exercises: serving
#
# Three exercises, two easy and one medium. None of them needs a job or an endpoint.

# %%
import json

import numpy as np

import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 08.1 · Wrong, and sure of it (5 minutes, easy)
#
# A model's answers are an array of probabilities, (n, 10), and the right classes an array, (n,).
# Write the function that returns the numbers of the images that the model got wrong, **the surest
# mistake first**: those are the images to look at. How sure the model is, is its largest
# probability.
#
# <details><summary>Hint</summary>
# argmax over the last axis gives the model's class. np.flatnonzero turns a comparison into numbers,
# and np.argsort sorts from the smallest.
# </details>


# %% tags=["answer"]
def surest_mistakes(probabilities, labels):
    """The numbers of the wrong answers, from the surest to the least sure."""
    # BEGIN SOLUTION
    wrong = np.flatnonzero(probabilities.argmax(axis=1) != labels)
    return wrong[np.argsort(-probabilities[wrong].max(axis=1))]
    # END SOLUTION


# %% tags=["check"]
workshop.check("08.1", surest_mistakes)

# %% [markdown]
# ## Exercise 08.2 · A file for batch transform (6 minutes, easy)
#
# A batch transform reads a file line by line, and each line is a record of its own. Write the
# function that makes such a file from images, an array (n, 8, 8, 1) of whole numbers: a JSON object
# in each line, `{"images": …}` with one image as nested lists, and a line break at its end.
#
# <details><summary>Hint</summary>
# json knows Python's lists and numbers but not numpy's: array.tolist() converts them.
# json.dumps(value) writes no line breaks of its own.
# </details>


# %% tags=["answer"]
def json_lines(images):
    """A text with a JSON object for each image, one in each line."""
    # BEGIN SOLUTION
    return "".join(json.dumps({"images": image.tolist()}) + "\n" for image in images)
    # END SOLUTION


# %% tags=["check"]
workshop.check("08.2", json_lines)

# %% [markdown]
# ## Exercise 08.3 · A digit in place of ten numbers (8 minutes, medium)
#
# A server answers with the probabilities of ten classes, in JSON:
# `{"predictions": [[0.1, …], …]}`. Your clients want a digit, and want to know when the model isn't
# sure. Write the function that an `output_handler` would call. It takes that text and returns
# another: `{"digits": [3, null, …]}`, with the likeliest digit of each image, or `null` if its
# probability is below `sure`.
#
# <details><summary>Hint</summary>
# Use json.loads, argmax over the last axis, and int(), because json.dumps refuses numpy's numbers.
# None becomes null.
# </details>


# %% tags=["answer"]
def digits_of(body, sure=0.5):
    """The server's answer in short: the JSON text {"digits": [...]}."""
    # BEGIN SOLUTION
    rows = np.array(json.loads(body)["predictions"])
    best = rows.argmax(axis=1)
    digits = [int(d) if row[d] >= sure else None for d, row in zip(best, rows, strict=True)]
    return json.dumps({"digits": digits})
    # END SOLUTION


# %% tags=["check"]
workshop.check("08.3", digits_of)
