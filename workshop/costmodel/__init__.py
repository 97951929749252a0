"""What an all-reduce costs: the alpha-beta model, and the bytes that every rank must pass.

A message of n bytes takes alpha + beta · n seconds. Messages of one round travel at the same
time, rounds follow each other. So an algorithm is a list of rounds, and all else is sums:

    link = Link.through((8, 40e-6), (8_000_000, 4e-3))           # two measured points
    predicted_seconds("ring", 1_000_000, world_size=4, links=link)
    bytes_by_rank("naive", 1_000_000, world_size=4)

Where ranks live on instances there are two tiers: inside an instance, and across, where all
messages share the instance's one link to the network:

    tiers = TwoTiers.from_measurements(job.events)               # scripts/measure_all_reduce.py
    predicted_seconds("two_tier", 1_000_000, instances=2, ranks_per_instance=4, links=tiers)
    bound("two_tier", 1_000_000, instances=2, ranks_per_instance=4, bits_per_second=200e6)

The model knows nothing of the time to add numbers, nor of anything else that a machine does.
Against real jobs (`python -m bench links`, 2 x 4 ranks, 100 to 400 Mbit/s, 24 points, 2026-11-21,
2 busy cores) its median error was 10 %. Worst was `ring` on 1 MiB, chunks of 128 KiB: up to twice
the prediction. What it lacks there is not known: no link line has it.
"""

from workshop.costmodel.algorithms import ALGORITHMS, PLACED, naive, ring, tree
from workshop.costmodel.links import Link, SharedLinks
from workshop.costmodel.messages import Message, Placement, Rounds
from workshop.costmodel.predicting import (
    bound,
    busiest_link_bytes,
    bytes_by_instance,
    bytes_by_rank,
    predicted_seconds,
    rounds,
)
from workshop.costmodel.tiers import TwoTiers

__all__ = [
    "ALGORITHMS",
    "PLACED",
    "Link",
    "Message",
    "Placement",
    "Rounds",
    "SharedLinks",
    "TwoTiers",
    "bound",
    "busiest_link_bytes",
    "bytes_by_instance",
    "bytes_by_rank",
    "naive",
    "predicted_seconds",
    "ring",
    "rounds",
    "tree",
]
