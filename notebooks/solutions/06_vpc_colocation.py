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
# Three exercises, easy, medium and hard. None of them starts a job. The last one has a surprise.

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
# The protocol `"-1"` means every protocol on every port. Write the function that says whether the
# instances of a job in this group reach each other on every port, **also with EFA**: members must
# be let in *and* out, each by a rule that names the group itself.
#
# The group above lets its members in, and out only to port 443. So the answer is `False`.
#
# <details><summary>Hint</summary>
# Write a small function for one list of rules, and ask it twice. A rule counts if its protocol is
# "-1" and one of its UserIdGroupPairs has this group's own GroupId.
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
# `instances` instances with `ranks_each` ranks on each average `megabytes` MB of gradients, with a
# ring over all ranks that fills one instance before it goes on to the next. Each instance has a
# link of `gbit` Gbit/s, which sends and receives at the same time. How many seconds do the
# gradients need on that link, in each step? Count only the link: no start of a message, no adding.
#
# Lesson 02: in a ring of N ranks each rank sends 2 (N - 1) / N times the bytes. Of an instance's
# ranks, only the last one sends to another instance.
#
# 1 MB is 1,000,000 bytes; 1 Gbit/s is 1,000,000,000 bits in a second.
#
# <details><summary>Hint</summary>
# N counts ranks, not instances. A byte has 8 bits. And what crosses the link of an instance that
# is alone?
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
# A step on one instance with one rank takes `fixed + divided` seconds. n instances with one rank
# each divide `divided` among them, do `fixed` whole, and then send gradients around a ring:
#
# fixed + divided / n + 2 (n - 1) / n · bytes / rate
#
# Write the function that returns the link, in **Mbit/s**, at which n instances are exactly as fast
# as one. Below it they are slower. Then call it for 2, 4 and 8 instances, and look.
#
# <details><summary>Hint</summary>
# Set the formula equal to fixed + divided and solve it for the rate. Much of it cancels. The rate
# is in bytes per second then: times 8, divided by a million, makes Mbit/s.
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
# The surprise: the number of instances cancels. 2 · bytes / divided is all that is left. With a
# link narrower than that, no number of instances helps; with a wider one, more of them help more.
# What you can change is the numerator (send fewer bytes: lesson 07) and the denominator (compute
# more before you send: a larger batch).
