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
def ring_seconds(answer) -> str:
    """Compare with the cost model; name the usual mistakes by their value."""
    for n_bytes, world_size, alpha, beta in (
        (8_000_000, 4, 50e-6, 1e-9),
        (4_000, 16, 20e-6, 1e-10),
        (1_000_001, 7, 0.0, 2e-9),
        (100, 2, 1e-3, 0.0),
        (5_000, 1, 1e-3, 1e-9),
    ):
        n, chunk = world_size, n_bytes / world_size
        right = alpha_beta.estimated_seconds("ring", n_bytes, n, alpha_beta.Link(alpha, beta))
        seconds = answer(n_bytes, world_size, alpha, beta)
        whole = 2 * (n - 1) * (alpha + beta * math.ceil(chunk))  # whole bytes: right as well
        if any(
            math.isclose(seconds, accepted, rel_tol=1e-9, abs_tol=1e-15)
            for accepted in (right, whole)
        ):
            continue
        step = alpha + beta * chunk
        mistakes = {
            (n - 1) * step: "is one half, the reduce-scatter. The all-gather takes as long again",
            2 * (n - 1) * (alpha + beta * n_bytes): "is the naive way: each of the ring's messages "
            "is a chunk, 1 / world_size of the tensor",
            2 * n * step: "has a step too many in each half: after world_size - 1 steps a chunk "
            "has been everywhere",
            alpha + 2 * (n - 1) * beta * chunk: "pays alpha once, but every step waits for it",
            2
            * (n - 1)
            * (alpha + beta * (n_bytes // n)): "drops the bytes that are left over when "
            "the tensor is cut: divide with /",
            2 * (n - 1) * step * n: "adds up all ranks, but they send at the same time",
        }
        why = next((text for value, text in mistakes.items() if math.isclose(seconds, value)), "")
        raise Wrong(
            f"{n_bytes:,} bytes on {n} ranks, alpha {alpha:g} s, beta {beta:g} s per byte: "
            f"{seconds:.6g} s {why or 'is not ' + format(right, '.6g') + ' s: count the steps'}."
        )
    return "As in workshop/measure/all_reduces.py, from 1 to 16 ranks."
