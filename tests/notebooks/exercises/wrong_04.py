"""Wrong answers that people really give to the exercises of lesson 04."""


def last_events(log):
    """{rank: its last line, without the rank}."""
    events = {}
    for line in log:
        rank, event = line.removeprefix("rank ").split(": ")
        events[int(rank)] = event
    return events


def reason_of(event):
    if event == "done":
        return "left early"
    return "other call" if event.endswith("begins") else "stuck"


def blames_who_printed_last(log):
    rank = int(log[-1].split(":")[0].removeprefix("rank "))
    return rank, reason_of(last_events(log)[rank])


def blames_who_printed_first(log):
    return int(log[0].split(":")[0].removeprefix("rank ")), "stuck"


def trusts_rank_0(log):
    """Whoever differs from rank 0 is at fault."""
    last = last_events(log)
    rank = next(rank for rank in sorted(last) if last[rank] != last[0])
    return rank, reason_of(last[rank])


def reads_one_digit(log):
    """Right up to ten ranks."""
    last = {line[5]: line.split(": ")[1] for line in log}
    events = list(last.values())
    rank = next(rank for rank in last if events.count(last[rank]) == 1)
    return int(rank), reason_of(last[rank])


def at_fault(log):
    last = last_events(log)
    events = list(last.values())
    return next(rank for rank in last if events.count(last[rank]) == 1)


def from_zero(step, single, size, warmup_steps):
    return single * size * min(1.0, step / max(1, warmup_steps))


def at_once(step, single, size, warmup_steps):
    return single * size


def never_stops(step, single, size, warmup_steps):
    return single + single * (size - 1) * step / max(1, warmup_steps)


def divides_by_zero(step, single, size, warmup_steps):
    return single + single * (size - 1) * min(1.0, step / warmup_steps)


def looks_at_the_end_first(ranks):
    if len({row["weights_at_end"] for row in ranks}) > 1:
        return "tape"
    if len({row["weights_after_first_step"] for row in ranks}) > 1:
        return "broadcast"
    return "shard" if len({row["images_seen"] for row in ranks}) == 1 else None


def looks_at_two(ranks, other):
    """Compares rank 0 with one other rank alone."""
    for step, key in (("broadcast", "weights_after_first_step"), ("tape", "weights_at_end")):
        if ranks[0][key] != ranks[other][key]:
            return step
    return "shard" if ranks[0]["images_seen"] == ranks[other]["images_seen"] else None


def trusts_equal_weights(ranks):
    if len({row["weights_after_first_step"] for row in ranks}) > 1:
        return "broadcast"
    return "tape" if len({row["weights_at_end"] for row in ranks}) > 1 else None


WRONG = {
    "04.1": [
        (blames_who_printed_last, "only printed last"),
        (blames_who_printed_first, "waits in the call in which most ranks wait"),
        (trusts_rank_0, "it is rank 0. It waits in the call in which most"),
        (reads_one_digit, "rank 11|StopIteration"),
        (lambda log: (at_fault(log), "stuck"), "you said 'stuck'. Its last line begins a call"),
        (lambda log: (at_fault(log), "other call"), "you said 'other call'. .* in its own code"),
        (lambda log: (f"rank {at_fault(log)}", "stuck"), "there is no such rank"),
        (lambda log: at_fault(log), "return a rank and one of stuck, other call"),
    ],
    "04.2": [
        (from_zero, "learns nothing"),
        (at_once, "no warm-up"),
        (never_stops, "stay where it is"),
        (divides_by_zero, "ZeroDivisionError"),
    ],
    "04.3": [
        (looks_at_the_end_first, "lacks broadcast, and you said 'tape'"),
        (lambda ranks: looks_at_two(ranks, 1), "lacks broadcast, and you said None"),
        (lambda ranks: looks_at_two(ranks, -1), "lacks broadcast, and you said None"),
        (trusts_equal_weights, "the work was done twice"),
    ],
}
