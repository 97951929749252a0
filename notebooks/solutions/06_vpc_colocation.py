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

# %% [markdown] slideshow={"slide_type": "slide"}
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
# ## Exercise 06.2 · Why does this job hang? (10 minutes, medium)
#
# Five jobs of two instances in a VPC. None has ended, all cost money. Their logs were made for this
# exercise, in the words that these programs use, with minutes and seconds in front. Each has
# another cause. Which?
#
# | cause | |
# |---|---|
# | `"security group"` | members of the group don't reach each other |
# | `"interface endpoint"` | the script calls AWS and finds no way there |
# | `"NAT gateway"` | something comes from the internet, and there is no way out |
# | `"no EFA"` | the ranks talk over TCP: slow, not hung |
# | `"late rank"` | the network is fine: one rank doesn't come to the all-reduce |
# | `"two zones"` | the instances are far from each other |
#
# Return for each job its cause and the number of a line that gives it away. Then say what you would
# change; the check answers.
#
# ```text
# job A
# 1  00:04 algo-1: Invoking training script: mpirun --host algo-1,algo-2 -np 2 train_torch_ddp.py
# 2  00:05 algo-1: Cannot connect to host algo-2
# 3  00:06 algo-1: Cannot connect to host algo-2
# 4  31:40 algo-1: Cannot connect to host algo-2
#
# job B
# 1  00:03 algo-2: Installing dependencies from requirements.txt
# 2  01:18 algo-2: WARNING: Retrying (Retry(total=4, connect=None, ...)) after connection broken by
#                  'ConnectTimeoutError(... connect timeout=15)': /simple/einops/
# 3  02:33 algo-2: WARNING: Retrying (Retry(total=3, connect=None, ...)) after connection broken by
#                  'ConnectTimeoutError(... connect timeout=15)': /simple/einops/
#
# job C
# 1  00:09 rank 0 on algo-1: NCCL INFO NET/OFI Selected provider is efa (found 4 nics)
# 2  00:10 rank 0 on algo-1: NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/AWS Libfabric/0
# 3  00:41 rank 0 on algo-1: {"event": "step", "step": 40, "train_loss": 0.61}
# 4  00:41 rank 8 on algo-2: reading part 3 of 400 again: checksum differs
# 5  10:41 rank 0 on algo-1: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41,
#                  OpType=ALLREDUCE, Timeout(ms)=600000)
#
# job D
# 1  00:08 rank 0 on algo-1: NCCL INFO NET/OFI No eligible providers were found
# 2  00:08 rank 0 on algo-1: NCCL INFO Using network Socket
# 3  00:09 rank 0 on algo-1: NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/Socket/0
# 4  06:50 rank 0 on algo-1: {"event": "step", "step": 10, "step_seconds": 39.8}
#
# job E
# 1  00:07 rank 0 on algo-1: Using network AWS Libfabric
# 2  00:12 rank 0 on algo-1: {"event": "start", "world_size": 2}
# 3  01:12 rank 0 on algo-1: ConnectTimeoutError: Connect timeout on endpoint URL:
#                  "https://secretsmanager.us-east-1.amazonaws.com/", attempt 1
# 4  02:13 rank 0 on algo-1: ConnectTimeoutError: Connect timeout on endpoint URL:
#                  "https://secretsmanager.us-east-1.amazonaws.com/", attempt 2
# ```
#
# <details><summary>Hint</summary>
# Ask of each log: who waits for whom? Another instance, the internet, AWS, or a rank that is busy?
# And is anything moving at all?
# </details>


# %% tags=["answer"]
def causes():
    """From each job's letter to its cause, and the number of a line that gives it away."""
    # BEGIN SOLUTION
    return {
        "A": ("security group", 2),
        "B": ("NAT gateway", 2),
        "C": ("late rank", 4),
        "D": ("no EFA", 2),
        "E": ("interface endpoint", 3),
    }
    # END SOLUTION


# %% tags=["check"]
workshop.check("06.2", causes)

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
