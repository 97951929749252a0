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
# # 06 · Exercises: VPC colocation
#
# Three exercises: easy, medium and hard. None of them starts a job. The last one has a surprise.

# %%
import workshop

# %% [markdown]
# ## Exercise 06.1 · Does this group let ranks through? (6 minutes, easy)
#
# EC2 describes a security group like this (shortened):
#
# ```python
# {
#     "GroupId": "sg-1",
#     "IpPermissions": [                                        # what may come in
#         {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-1"}], "IpRanges": []},
#     ],
#     "IpPermissionsEgress": [                                  # what may go out
#         {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443,
#          "UserIdGroupPairs": [], "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
#     ],
# }
# ```
#
# The protocol `"-1"` means every protocol on every port. Write a function that returns whether the
# instances of a job in this group reach each other on every port, **also with EFA**: members have
# to be let in *and* out, each by a single rule with protocol `"-1"` that names the group itself.
#
# The group above lets its members in, but out only to port 443. So the answer is `False`.
#
# <details><summary>Hint</summary>
# Write a small function for one list of rules, and call it for both lists. A rule counts if its
# protocol is "-1" and one of its UserIdGroupPairs has this group's own GroupId.
# </details>


# %% tags=["answer"]
def lets_ranks_through(group):
    """Whether members of the group reach each other on every port, in both directions."""

    # BEGIN SOLUTION
    def to_itself(rules):
        return any(
            rule["IpProtocol"] == "-1"
            and group["GroupId"] in [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]
            for rule in rules
        )

    return to_itself(group["IpPermissions"]) and to_itself(group["IpPermissionsEgress"])
    # END SOLUTION


# %% tags=["check"]
workshop.check("06.1", lets_ranks_through)

# %% [markdown]
# ## Exercise 06.2 · How long do gradients travel? (8 minutes, medium)
#
# `instances` instances with `ranks_each` ranks on each average `megabytes` MB of gradients. They
# use a ring over all ranks that visits one instance completely before the next. Each instance has a
# link of `gbit` Gbit/s, which can send and receive at the same time. How many seconds per step do
# the gradients need on that link? Count only the bytes: no latency, no time for adding.
#
# Lesson 02: in a ring of N ranks each rank sends 2 (N - 1) / N times the bytes. Of an instance's
# ranks, only the last one sends to another instance.
#
# 1 MB is 1,000,000 bytes; 1 Gbit/s is 1,000,000,000 bits per second.
#
# <details><summary>Hint</summary>
# N counts ranks, not instances. A byte has 8 bits. And what crosses the link of a single instance?
# </details>


# %% tags=["answer"]
def link_seconds(megabytes, instances, ranks_each, gbit):
    """Seconds on the link between instances, in each step."""
    # BEGIN SOLUTION
    if instances == 1:
        return 0.0
    ranks = instances * ranks_each
    return 2 * (ranks - 1) / ranks * megabytes * 1e6 * 8 / (gbit * 1e9)
    # END SOLUTION


# %% tags=["check"]
workshop.check("06.2", link_seconds)

# %% [markdown]
# ## Exercise 06.3 · Where more instances stop paying (11 minutes, hard)
#
# A step on one instance with one rank takes `fixed + divided` seconds. With n instances of one rank
# each, the work of `divided` seconds is shared among them, each of them still does that of `fixed`
# seconds, and then the gradients go around a ring:
#
# fixed + divided / n + 2 (n - 1) / n · bytes / rate
#
# Write a function that returns the bandwidth, in **Mbit/s**, at which n instances are exactly as
# fast as one. Below it they are slower. Then call it for 2, 4 and 8 instances and compare.
#
# <details><summary>Hint</summary>
# Set the formula equal to fixed + divided and solve it for the rate. Much of it cancels. The rate
# is then in bytes per second: multiply by 8 and divide by a million to get Mbit/s.
# </details>


# %% tags=["answer"]
def crossing_mbit(fixed, divided, megabytes, instances):
    """Mbit/s at which this many instances are as fast as one. fixed, divided: seconds."""
    # BEGIN SOLUTION
    saved = divided * (1 - 1 / instances)  # seconds that dividing the work saves
    sent = 2 * (instances - 1) / instances * megabytes * 1e6  # bytes that it costs
    return sent / saved * 8 / 1e6
    # END SOLUTION


# %% tags=["check"]
workshop.check("06.3", crossing_mbit)

# %% [markdown]
# The surprise: the number of instances cancels, and 2 · bytes / divided is all that is left. On a
# slower link, no number of instances helps; on a faster one, more of them help more. What you can
# change is the numerator (send fewer bytes: lesson 07) and the denominator (compute more before you
# send: a larger batch).
