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
# # 99 · Exercises: clean up
#
# Two rules make a clean-up safe, even if it is interrupted: delete only what is yours, and delete
# in the right order.

# %%
from graphlib import TopologicalSorter

import workshop

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercise 99.1 · Whose is it? (5 minutes, easy)
#
# AWS returns the tags of a thing as a list:
#
# `[{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": "ada"}]`
#
# A thing without tags has an empty list. It may have more tags than these two, in any order.
#
# Write `may_delete`. It returns `True` if the thing carries both tags of the course, with the
# value `data-parallel` and the given seat, and `False` for anything else.
#
# <details><summary>Hint</summary>
#
# Make a dictionary of the list first. `dictionary.get(key)` is `None` where there is no such key.
#
# </details>


# %% tags=["answer"]
def may_delete(tags, seat):
    """Tags: a list as AWS gives it. Seat: a text. Returns True or False."""
    # BEGIN SOLUTION
    by_key = {tag["Key"]: tag["Value"] for tag in tags}
    return by_key.get("workshop") == "data-parallel" and by_key.get("seat") == seat
    # END SOLUTION


# %% tags=["check"]
workshop.check("99.1", may_delete)

# %% [markdown]
# ## Exercise 99.2 · In which order? (8 minutes, medium)
#
# Some things use others. An endpoint uses its configuration, and that uses a model. The roles
# stack uses an output of the storage stack. A log has no tags: it uses its job's record to prove
# whose it is.
#
# `uses` is a dictionary: each thing, and the set of things that it uses.
#
# `{"endpoint": {"configuration"}, "configuration": {"model"}, "model": set()}`
#
# Write `deletion_order`. It returns a list of all things in which **each comes before everything
# that it uses**: here `["endpoint", "configuration", "model"]`. A thing may be used without being
# a key of the dictionary; it belongs in the list too. Where two things do not use each other,
# either may come first.
#
# <details><summary>Hint</summary>
#
# This is a topological order, and Python has one: `graphlib.TopologicalSorter(uses)`. Its
# `static_order()` gives what is used first. You want it the other way round.
#
# </details>


# %% tags=["answer"]
def deletion_order(uses):
    """Uses: a dict of sets of texts. Returns a list of texts."""
    # BEGIN SOLUTION
    return list(TopologicalSorter(uses).static_order())[::-1]
    # END SOLUTION


# %% tags=["check"]
workshop.check("99.2", deletion_order)
