"""Wrong answers that people really give to the exercises of lesson 04."""


def as_if_all_hosts_were_equal(rank, slots):
    return rank // slots[0], rank % slots[0], slots[0]


def round_robin(rank, slots):
    host = rank % len(slots)
    return host, rank // len(slots), slots[host]


def size_of_all(rank, slots):
    for host, here in enumerate(slots):
        if rank < here:
            return host, rank, sum(slots)
        rank -= here


def rank_is_local_rank(rank, slots):
    before = 0
    for host, here in enumerate(slots):
        if rank < before + here:
            return host, rank, here
        before += here


def from_zero(step, single, size, warmup_steps):
    return single * size * min(1.0, step / max(1, warmup_steps))


def at_once(step, single, size, warmup_steps):
    return single * size


def never_stops(step, single, size, warmup_steps):
    return single + single * (size - 1) * step / max(1, warmup_steps)


def divides_by_zero(step, single, size, warmup_steps):
    return single + single * (size - 1) * min(1.0, step / warmup_steps)


def looks_at_the_end_first(ranks):
    if len({one["weights_at_end"] for one in ranks}) > 1:
        return "tape"
    if len({one["weights_after_first_step"] for one in ranks}) > 1:
        return "broadcast"
    return "shard" if len({one["images_seen"] for one in ranks}) == 1 else None


def looks_at_two_ranks(ranks):
    for step, key in (("broadcast", "weights_after_first_step"), ("tape", "weights_at_end")):
        if ranks[0][key] != ranks[1][key]:
            return step
    return "shard" if ranks[0]["images_seen"] == ranks[1]["images_seen"] else None


def looks_at_the_first_and_the_last(ranks):
    for step, key in (("broadcast", "weights_after_first_step"), ("tape", "weights_at_end")):
        if ranks[0][key] != ranks[-1][key]:
            return step
    return "shard" if ranks[0]["images_seen"] == ranks[-1]["images_seen"] else None


def trusts_equal_weights(ranks):
    if len({one["weights_after_first_step"] for one in ranks}) > 1:
        return "broadcast"
    return "tape" if len({one["weights_at_end"] for one in ranks}) > 1 else None


WRONG = {
    "04.1": [
        (as_if_all_hosts_were_equal, r"slots \[2, 1\], rank 2 has local_size 1, and you said 2"),
        (round_robin, "fill one host before"),
        (size_of_all, "not of all"),
        (rank_is_local_rank, "counts the ranks of one host"),
    ],
    "04.2": [
        (from_zero, "learns nothing"),
        (at_once, "no warm-up"),
        (never_stops, "stay where it is"),
        (divides_by_zero, "ZeroDivisionError"),
    ],
    "04.3": [
        (looks_at_the_end_first, "lacks broadcast, and you said 'tape'"),
        (looks_at_two_ranks, "lacks broadcast, and you said None"),
        (looks_at_the_first_and_the_last, "lacks broadcast, and you said None"),
        (trusts_equal_weights, "the work was done twice"),
    ],
}
