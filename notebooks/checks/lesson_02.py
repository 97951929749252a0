"""The checks of lesson 02's exercises."""

from __future__ import annotations

import math

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered
from workshop.measure import alpha_beta


@exercise("02.1")
def chunks_of_step(answer) -> str:
    """Walk the ring with the answer's chunks, as sets of the ranks whose numbers are in them."""
    for world_size in (4, 2, 3, 7):
        contributions = [[{rank} for _ in range(world_size)] for rank in range(world_size)]
        for step in range(world_size - 1):
            chosen = [_chunks(answer, rank, step, world_size) for rank in range(world_size)]
            _take_step(contributions, chosen, step, world_size)
        _check_end(contributions, world_size)
    return "Rank r ends with the whole sum of chunk r, on 2, 3, 4 and 7 ranks."


def _chunks(answer, rank: int, step: int, world_size: int) -> tuple[int, int]:
    at = f"rank {rank} of {world_size}, step {step}"
    returned = answer(rank, step, world_size)
    if not (isinstance(returned, tuple | list) and len(returned) == 2):
        raise Wrong(
            f"{at}: {returned!r} is not two numbers. Return (chunk to send, chunk to add to)."
        )
    for chunk in returned:
        if chunk not in range(world_size):
            raise Wrong(
                f"{at}: there is no chunk {chunk}, only 0 to {world_size - 1}. The ring closes: "
                "what comes before chunk 0 is the last one. Use % world_size."
            )
    return returned[0], returned[1]


def _take_step(contributions: list, chosen: list, step: int, world_size: int) -> None:
    arriving = []
    for rank, (_, receives) in enumerate(chosen):
        before = (rank - 1) % world_size
        sent = chosen[before][0]
        if sent != receives:
            raise Wrong(
                f"{world_size} ranks, step {step}: rank {before} sends chunk {sent}, but rank "
                f"{rank} takes what comes for chunk {receives}. It must take the chunk that the "
                "rank before it sends."
            )
        arriving.append(set(contributions[before][sent]))
    for rank, (_, receives) in enumerate(chosen):
        twice = contributions[rank][receives] & arriving[rank]
        if twice:
            raise Wrong(
                f"{world_size} ranks, step {step}: rank {rank} adds to chunk {receives} what "
                f"already holds the numbers of rank {min(twice)}: they would count twice. In each "
                "step the chunk moves on: send the one that you added to in the step before."
            )
        contributions[rank][receives] |= arriving[rank]


def _check_end(contributions: list, world_size: int) -> None:
    for rank, chunks in enumerate(contributions):
        if len(chunks[rank]) == world_size:
            continue
        complete = [chunk for chunk, ranks in enumerate(chunks) if len(ranks) == world_size]
        if complete:
            raise Wrong(
                f"{world_size} ranks: at the end rank {rank} holds the whole sum of chunk "
                f"{complete[0]}. It was to be chunk {rank}: begin with another chunk."
            )
        raise Wrong(
            f"{world_size} ranks: at the end rank {rank} holds chunk {rank} with the numbers of "
            f"ranks {sorted(chunks[rank])} only. Send on, in each step, the chunk that you added "
            "to in the step before."
        )


@exercise("02.2", seconds=180)
def all_gather(answer) -> str:
    """Run the answer on real ranks, on vectors of several lengths and types."""
    for world_size in (3, 2):
        with start_ranks(world_size) as ranks:
            for length, kind in ((4, "float32"), (1, "int64"), (1000, "float64")):
                results = _on_ranks(ranks, answer, length, kind)
                for rank, result in enumerate(results):
                    _check_gathered(result, rank, world_size, length, kind)
    return "3 and 2 real ranks hold all vectors, in the ranks' order."


def _on_ranks(ranks, answer, length: int, kind: str) -> list[dict]:
    try:
        return ranks.run("collectives.practice:call", answer, length, kind, timeout=10)
    except RankFailed as error:
        message = str(error)
        if unanswered("02.2") in message:
            raise
        if "had not returned" in message:
            raise Wrong(
                "Your ranks wait for each other forever. If all of them send first, nobody "
                "receives, and the other way round: begin with dist.isend, then dist.recv, then "
                "wait() for the send. And each message needs one send and one receive."
            ) from error
        raise Wrong(f"A rank stopped:\n{message}") from error


def _check_gathered(result: dict, rank: int, world_size: int, length: int, kind: str) -> None:
    at = f"{world_size} ranks, vectors of {length} {kind}: rank {rank}"
    if result["kind"] != f"torch.{kind}":
        raise Wrong(f"{at} returned {result['kind']}. Return a tensor of the type of `vector`.")
    if result["shape"] != (world_size, length):
        raise Wrong(
            f"{at} returned the shape {result['shape']}. Return one row for each rank: "
            f"({world_size}, {length})."
        )
    expected = [[100 * (r + 1) + i for i in range(length)] for r in range(world_size)]
    if result["values"] == expected:
        return
    wrong = next(r for r in range(world_size) if result["values"][r] != expected[r])
    if sorted(result["values"]) == sorted(expected):
        raise Wrong(f"{at} has all vectors, but row {wrong} is not rank {wrong}'s.")
    raise Wrong(
        f"{at}: row {wrong} does not hold rank {wrong}'s vector. With N ranks it takes N - 1 "
        "steps, and in each a rank passes on what it received in the step before."
    )


@exercise("02.3")
def best(answer) -> str:
    """Compare with the cost model; name the usual mistakes by what they would choose."""
    for n_bytes, compute, alpha, beta, most in (
        (4_000, 0.02, 1e-3, 1e-9, 16),  # latency decides: a tree
        (8_000_000, 2.0, 3e-4, 4e-8, 16),  # bytes decide: a ring
        (4_000, 0.001, 1e-3, 1e-9, 8),  # nothing is to be gained
        (100_000_000, 5.0, 5e-5, 8e-10, 64),  # the more the better
        (1_000_000, 0.5, 2e-3, 4e-8, 13),
    ):
        _check_best(answer, n_bytes, compute, alpha, beta, most)
    return "The shortest step of all, from 1 to 64 ranks."


def _check_best(answer, n_bytes, compute, alpha, beta, most) -> None:
    link = alpha_beta.Link(alpha, beta)
    sums = {
        (name, n): alpha_beta.estimated_seconds(name, n_bytes, n, link)
        for name in ("naive", "tree", "ring")
        for n in range(2, most + 1)
    }
    steps = {key: compute / key[1] + seconds for key, seconds in sums.items()}
    steps["none", 1] = compute
    returned = answer(n_bytes, compute, alpha, beta, most)
    case = (
        f"{n_bytes:,} bytes, {compute:g} s to compute, alpha {alpha:g} s, beta {beta:g} s per "
        f"byte, up to {most} ranks"
    )
    if not isinstance(returned, tuple | list) or tuple(returned) not in steps:
        raise Wrong(
            f"{case}: {returned!r} is no answer. Return (algorithm, ranks), such as "
            f'("ring", 4), with 2 to {most} ranks, or ("none", 1).'
        )
    chosen, right = tuple(returned), min(steps, key=steps.__getitem__)
    if math.isclose(steps[chosen], steps[right], rel_tol=1e-9):
        return
    name, n = chosen
    if chosen == ("none", 1):
        why = "One process computes everything itself: divide compute by the ranks"
    elif steps[chosen] > compute:
        why = f"One process needs {compute:.4g} s and sends nothing: compare with it, too"
    elif name != right[0] and n == right[1]:
        why = f"Count the {right[0]}'s steps again, and the bytes of its messages"
    elif n == most:
        why = "More ranks compute less each, but send more messages: try every number"
    elif sums[chosen] <= min(sums.values()) * (1 + 1e-9):
        why = "That is the shortest all-reduce, but a step also computes: add compute / ranks"
    elif name == right[0] == "tree" and n & (n - 1):
        why = f"Has a tree on {n} ranks as few steps as you count? Its levels round log2 up"
    else:
        why = "Try every algorithm with every number of ranks, and take the shortest step"
    raise Wrong(
        f"{case}: {name} on {n} makes a step of {steps[chosen]:.4g} s, {right[0]} on {right[1]} "
        f"one of {steps[right]:.4g} s. {why}."
    )


@exercise("02.4", seconds=180)
def zero_step(answer) -> str:
    """Run the answer on real ranks; compare with what one process trains."""
    for world_size in (3, 2):
        with start_ranks(world_size) as ranks:
            for rank, result in enumerate(_stepped(ranks, answer, 4 * world_size)):
                _check_step(result, rank, world_size)
    return "The weights of DDP on 3 and 2 real ranks, and each keeps one N-th of the momentum."


def _stepped(ranks, answer, length: int) -> list[dict]:
    try:
        return ranks.run("collectives.practice:call_step", answer, length, 3, timeout=20)
    except RankFailed as error:
        if unanswered("02.4") in str(error):
            raise
        raise Wrong(f"A rank stopped:\n{error}") from error


def _check_step(result: dict, rank: int, world_size: int) -> None:
    at = f"{world_size} ranks, 3 steps: rank {rank}"
    whole = {"all_reduce", "reduce", "broadcast"} & set(result["calls"])
    if whole:
        raise Wrong(
            f"{at} calls {min(whole)}. Use the two halves of an all-reduce: a rank needs the sum "
            "of its own part only."
        )
    close = {
        name: all(map(math.isclose, result["weights"], result[name]))
        for name in ("expected", "expected_of_the_sum", "without_momentum")
    }
    if close["expected"] and any(result["momentum"]):
        return
    if close["expected_of_the_sum"]:
        raise Wrong(f"{at} steps {world_size} times too far: a reduce-scatter adds. Divide.")
    if close["without_momentum"]:
        unchanged = "" if any(result["momentum"]) else ", in place: yours is still zero"
        raise Wrong(
            f"{at} trains without momentum. First momentum = 0.9 · momentum + gradient{unchanged}."
        )
    if close["expected"]:
        raise Wrong(
            f"{at} has the right weights, but `momentum` is still zero: change it in place."
        )
    part = slice(rank * 4, rank * 4 + 4)
    if all(map(math.isclose, result["weights"][part], result["expected"][part])):
        raise Wrong(
            f"{at} has the right weights in its own part, and old ones elsewhere: an all-gather "
            "of the weights is missing, or it doesn't write into `weights`."
        )
    raise Wrong(
        f"{at} has other weights than one process. Its part {rank} should be updated there."
    )
