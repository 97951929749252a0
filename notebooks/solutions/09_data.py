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
# # 09 · Exercises: data
#
# Three exercises, one easy and two medium. None of them needs a job.

# %%
import struct

import numpy as np

import workshop

# %% [markdown]
# ## Exercise 09.1 · Bytes of a picture (6 minutes, easy)
#
# CIFAR-10's binary files have 3,073 bytes for each picture: one for its label, then 1,024 for red,
# 1,024 for green, 1,024 for blue. Each colour comes row by row, 32 rows of 32 pixels.
#
# `reshape([32, 32, 3])` gives the correct shape and the wrong pixels, and no error.
#
# Write the function that returns the picture as an array (32, 32, 3): row, column, colour.
#
# <details><summary>Hint</summary>
# reshape cannot change the order of bytes. First give it the shape that the bytes have, colour
# first, and then move the axes with transpose.
# </details>


# %% tags=["answer"]
def picture_of(record):
    """The picture in 3,073 bytes, as an array of uint8 (32, 32, 3): row, column, colour."""
    # BEGIN SOLUTION
    pixels = np.frombuffer(record, np.uint8, offset=1)
    return pixels.reshape(3, 32, 32).transpose(1, 2, 0)
    # END SOLUTION


# %% tags=["check"]
workshop.check("09.1", picture_of)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 09.2 · Every file exactly once (9 minutes, medium)
#
# A script should work with both kinds of channel. Write the function that chooses the files of one
# rank, so that over all ranks **each file is read exactly once**, and the ranks of an instance get
# equally many, give or take one.
#
# - `names`: the names of the files in the channel's folder on this rank's instance, in the order in
#   which the file system lists them. That order may differ from instance to instance.
# - `sharded`: `True` if the channel is `ShardedByS3Key`. The folder then holds only this instance's
#   files; with more instances than files, some folders are empty. `False`: it holds all files, on
#   every instance.
# - `rank`, `world_size`: this rank's number, and how many ranks there are, over all instances.
#   `local_rank`, `local_size`: the same on this instance.
#
# <details><summary>Hint</summary>
# Who still has to divide? If the channel has divided among instances, only one instance's ranks
# share the folder. A slice [start::step] takes every step-th element. Sort first, or two instances
# count differently.
# </details>


# %% tags=["answer"]
def files_of(names, sharded, rank, world_size, local_rank, local_size):
    """The files that this rank reads: a list of names."""
    # BEGIN SOLUTION
    files = sorted(names)
    return files[local_rank::local_size] if sharded else files[rank::world_size]
    # END SOLUTION


# %% tags=["check"]
workshop.check("09.2", files_of)

# %% [markdown]
# ## Exercise 09.3 · Records of a file (10 minutes, medium)
#
# A TFRecord file is one record after another: its length in 8 bytes (`"<Q"`), 4 bytes of checksum,
# the data, 4 bytes of checksum. A copy of such a file may have been cut off, and nobody notices if
# the reader just stops there.
#
# Write the function that takes the bytes of a file and returns the data of its records, a list of
# bytes. If the file ends in the middle of a record, raise `ValueError`. Don't check the checksums.
#
# <details><summary>Hint</summary>
# struct.unpack("<Q", content[at : at + 8]) gives a tuple of one number. A slice beyond the end is
# just shorter, so compare where the record should end with len(content), before you cut.
# </details>


# %% tags=["answer"]
def records_of(content):
    """The data of each record. Content: the bytes of a TFRecord file."""
    # BEGIN SOLUTION
    records, at = [], 0
    while at < len(content):
        if at + 8 > len(content):
            raise ValueError(f"The file ends in the length of record {len(records)}.")
        (length,) = struct.unpack("<Q", content[at : at + 8])
        first, at = at + 12, at + 12 + length + 4
        if at > len(content):
            raise ValueError(f"The file ends in the middle of record {len(records)}.")
        records.append(content[first : first + length])
    return records
    # END SOLUTION


# %% tags=["check"]
workshop.check("09.3", records_of)
